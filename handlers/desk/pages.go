package desk

import "github.com/lychgate/caddy-lychgate/handlers/api"

// pages are all, by name, and order is that of those in the navigation.
var (
	pages = map[string]page{
		"curation":       {title: "Homepage Curation", may: api.MayManage, show: showCuration, act: fillSlot, isQueued: isMove, isLong: true},
		"events":         {title: "Events", may: api.MayManage, needsEvents: true, show: showEvents, act: changeEvents, isQueued: isPublishing, isLong: true, maxForm: maxEventForm, assets: "events"},
		"event-settings": {title: "Event Settings", may: api.MayManage, needsEvents: true, show: showEventSettings, act: saveEventSettings, maxForm: maxEventForm, assets: "events", of: "events"},
		"guest-list":     {title: "Guest List", may: api.MayManage, needsEvents: true, show: showGuestList, act: changeGuestList, isLong: true, maxForm: maxGuestForm, assets: "guests", of: "events"},
		"guest-message":  {title: "Message to Guests", may: api.MayManage, needsEvents: true, show: showGuestMessage, act: changeGuestMessage, maxForm: maxMessageForm, assets: "guests", of: "events"},
		"check-in":       {title: "Check-in", may: api.MayManage, needsEvents: true, show: showCheckIn, act: changeCheckIn, assets: "guests", of: "events"},
		"themes":         {title: "Themes", may: api.MayManage, show: showThemes, act: refreshTheme, isLong: true},
		"integrations":   {title: "Integrations", may: api.MayAdminister, needsMembers: true, show: showIntegrations, act: changeIntegrations},
		"sync":           {title: "Sync", may: api.MayAdminister, show: showSync, act: changeSync},
	}
	order = []string{"curation", "events", "themes", "integrations", "sync"}
)
