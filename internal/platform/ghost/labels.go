package ghost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// labelAttempts is how often a change of labels is sent that Ghost's database undoes.
const labelAttempts = 5

// labelClient sends changes that name labels.
type labelClient struct {
	api

	// labelling holds one while labels are changed, once labelsMeet: Ghost was seen to
	// undo a change of labels because of another.
	labelling  chan struct{}
	labelsMeet atomic.Bool
}

// label sends a change that names labels, by the function send. On MySQL those that come
// at the same time deadlock in Ghost, half of them with eight writers: once that was
// seen, one is sent at a time. Where it is another edge's, or staff's, it is sent again.
// A label that Ghost takes for another becomes that.
func (c *labelClient) label(ctx context.Context, labels *[]label, send func() error) error {
	alone := false
	for attempt := 1; ; attempt++ {
		if c.labelsMeet.Load() && !alone {
			done, err := c.alone(ctx)
			if err != nil {
				return err
			}
			defer done()
			alone = true
		}
		err := send()
		response, ok := errors.AsType[*Error](err)
		if !ok || response.Code != relationRefused || attempt == labelAttempts {
			return err
		}
		c.labelsMeet.Store(true)
		if attempt == 2 { // the first may have met another's
			if err := c.settleLabels(ctx, labels); err != nil {
				return platform.NoEffect(err)
			}
		}
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(50 * time.Millisecond)))): // so that two edges do not meet again
		case <-ctx.Done():
			return err
		}
	}
}

// alone waits until nobody else changes labels. It gives up when half of the time has
// gone: what is sent with too little left is cut off, and done in Ghost all the same.
func (c *labelClient) alone(ctx context.Context) (done func(), err error) {
	wait := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	select {
	case c.labelling <- struct{}{}:
		return func() { <-c.labelling }, nil
	case <-wait.Done():
		return nil, platform.NoEffect(fmt.Errorf("waiting for other changes of labels: %w", wait.Err()))
	}
}

// settleLabels puts in place of each label the one that Ghost's database takes it for. A
// label that is not there it makes, so that the next can be taken for it.
func (c *labelClient) settleLabels(ctx context.Context, wanted *[]label) error {
	settled := make([]label, 0, len(*wanted))
	for _, asked := range *wanted {
		var there labels
		query := url.Values{"filter": {"name:" + quote(asked.Name)}, "limit": {"1"}}
		if err := c.call(ctx, http.MethodGet, "/labels/", query, nil, &there); err != nil {
			return err
		}
		if len(there.Labels) == 0 {
			err := c.call(ctx, http.MethodPost, "/labels/", nil, labels{[]label{asked}}, &there)
			if _, refused := errors.AsType[*platform.Refusal](err); err != nil && !refused {
				return err
			}
		}
		if len(there.Labels) == 1 {
			asked.Name = there.Labels[0].Name
		}
		if !slices.ContainsFunc(settled, func(l label) bool { return fold.Label(l.Name) == fold.Label(asked.Name) }) {
			settled = append(settled, asked)
		}
	}
	*wanted = settled
	return nil
}

type label struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// labels is the envelope of requests and responses.
type labels struct {
	Labels []label `json:"labels"`
}
