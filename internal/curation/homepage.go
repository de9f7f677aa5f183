package curation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Homepage is the homepage of a site, as a theme declares it.
type Homepage struct {
	Site     string
	Posts    platform.PostHost
	Curator  *Curator
	Declared *manifest.Curation

	// OfEvents filters posts to those that show events. Nil for a site without events.
	OfEvents func(ctx context.Context, posts []string) ([]string, error)
}

// Slot is a slot and what it holds.
type Slot struct {
	manifest.Slot
	Posts []platform.Post // that carry the tag, as in platform.Tagged; at most MaxShown
	Total int             // of the posts that carry the tag
	Seen  bool            // by readers: the tag is not internal
	Move  *Move           // what the platform does not have yet, nil for nothing
}

const (
	// MaxShown is how many posts of a slot are shown, and maxPosts of all slots together,
	// but for one of each.
	MaxShown = 10
	maxPosts = 1000

	// FoundStep is how many posts a search returns at first, and how many more each time that
	// more are wanted.
	FoundStep = 20

	// MaxFound bounds the posts that a search returns.
	MaxFound = 80

	// maxRecent is how many posts are asked for, of which those of events are left out.
	maxRecent = 100

	// maxWords is how many words of a search count, each with up to maxWord bytes.
	maxWords, maxWord = 8, 100
)

// Find takes the keys of a section and of a slot. ok is false if the theme does not declare both.
func (h *Homepage) Find(section, slot string) (manifest.Section, manifest.Slot, bool) {
	s, ok := h.Section(section)
	for _, one := range s.Slots {
		if one.Key == slot {
			return s, one, ok
		}
	}
	return s, manifest.Slot{}, false
}

// Section takes the section's key. ok is false if the theme does not declare it.
func (h *Homepage) Section(key string) (manifest.Section, bool) {
	for _, s := range h.Declared.Sections {
		if s.Key == key {
			return s, true
		}
	}
	return manifest.Section{}, false
}

// ErrPlatform means that the platform could not be asked.
var ErrPlatform = errors.New("the platform does not answer")

// Show reads slots in their order. The more slots there are, the fewer posts of each. Errors:
// ErrPlatform, those of the store.
func (h *Homepage) Show(ctx context.Context, slots []manifest.Slot) ([]Slot, error) {
	var tags []string
	for _, slot := range slots {
		tags = append(tags, slot.Tag)
	}
	most := max(1, min(MaxShown, maxPosts/max(1, len(slots))))
	carried, err := h.Posts.Tagged(ctx, tags, most)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlatform, err)
	}
	pending, err := h.Curator.Pending(ctx, h.Site)
	if err != nil {
		return nil, err
	}
	shown := make([]Slot, 0, len(slots))
	for _, slot := range slots {
		of := Slot{Slot: slot, Posts: carried[slot.Tag].Posts, Total: carried[slot.Tag].Total}
		of.Seen = of.Total > 0 && !carried[slot.Tag].IsInternal
		if m, ok := pending[manifest.TagIdentity(slot.Tag)]; ok {
			of.Move = &m
		}
		shown = append(shown, of)
	}
	return shown, nil
}

// Kept has only what the slot is to hold and the platform does not have yet: the platform is not
// asked. Errors: those of the store.
func (h *Homepage) Kept(ctx context.Context, slot manifest.Slot) (Slot, error) {
	pending, err := h.Curator.Pending(ctx, h.Site)
	of := Slot{Slot: slot}
	if m, ok := pending[manifest.TagIdentity(slot.Tag)]; ok {
		of.Move = &m
	}
	return of, err
}

// Recent lists the newest published posts, as many as the section's picker declares, or those that show no
// events. Errors: ErrPlatform.
func (h *Homepage) Recent(ctx context.Context, of manifest.Section, withEvents bool) ([]platform.Post, error) {
	if withEvents || h.OfEvents == nil {
		return h.published(ctx, platform.PostSearch{Tag: filterOf(of), Most: of.Picker.RecentLimit})
	}
	list, err := h.published(ctx, platform.PostSearch{Tag: filterOf(of), Most: maxRecent})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	left, err := h.OfEvents(ctx, ids)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p platform.Post) bool { return slices.Contains(left, p.ID) })
	return list[:min(len(list), of.Picker.RecentLimit)], nil
}

// Search finds published posts with all words in their titles, the newest first. most is raised to
// FoundStep, and bounded by MaxFound. Errors: ErrPlatform.
func (h *Homepage) Search(ctx context.Context, of manifest.Section, text string, most int) (list []platform.Post, hasMore bool, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, false, nil
	}
	most = min(max(most, FoundStep), MaxFound)
	words = words[:min(len(words), maxWords)]
	for i, word := range words {
		words[i] = strings.ToValidUTF8(word[:min(len(word), maxWord)], "")
	}
	list, err = h.published(ctx, platform.PostSearch{Words: words, Tag: filterOf(of), Most: most + 1})
	return list[:min(len(list), most)], len(list) > most, err
}

func (h *Homepage) published(ctx context.Context, search platform.PostSearch) ([]platform.Post, error) {
	list, err := h.Posts.Published(ctx, search)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlatform, err)
	}
	return list, nil
}

func filterOf(s manifest.Section) string {
	if s.Picker.RecentFilter == nil {
		return ""
	}
	return s.Picker.RecentFilter.Tag
}

// ManyError means that a tag that readers see is carried by several posts, from all of
// which a choice would take it.
type ManyError struct{ Total int }

func (e *ManyError) Error() string { return fmt.Sprintf("%d posts carry the tag", e.Total) }

// Describe says what staff can do.
func (e *ManyError) Describe() errcode.Description {
	return errcode.Description{Code: errcode.Conflict, Message: fmt.Sprintf(
		"%d posts carry this tag, which readers see. Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first.", e.Total)}
}

// Fill has a post fill a slot, none if it is "". Errors: *ManyError, unless the tag may be
// taken from all other posts; ErrPlatform, if nobody says how many these are; those of
// [Curator.Move].
//
// Where the asker's platform has just not answered ([work.Asker]), it is not asked how many posts
// carry the tag, which only matters for a tag that readers see.
func (h *Homepage) Fill(ctx context.Context, slot manifest.Slot, post string, fromAll bool) error {
	switch isUnanswered := work.AskerOf(ctx).IsUnanswered; {
	case isUnanswered && !slot.IsInternal() && !fromAll:
		return ErrPlatform
	case !isUnanswered && !fromAll:
		carried, err := h.Posts.Tagged(ctx, []string{slot.Tag}, 2)
		if of := carried[slot.Tag]; err == nil && !of.IsInternal && of.Total > 1 {
			return &ManyError{of.Total}
		}
		if err != nil && !slot.IsInternal() {
			return fmt.Errorf("%w: %w", ErrPlatform, err)
		}
	}
	return h.Curator.Move(ctx, h.Site, Choice{slot.Tag, post})
}
