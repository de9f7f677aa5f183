package api

import "github.com/lychgate/caddy-lychgate/internal/history"

// HistoryResponse says who of the staff did what with a thing, the last first.
type HistoryResponse struct {
	History []entryResponse `json:"history"`
}

type entryResponse struct {
	At    string  `json:"at"`
	By    *string `json:"by"` // null for what was done on the platform
	Did   string  `json:"did"`
	About string  `json:"about,omitempty"` // the title of a post, or a reason
}

// NewHistoryResponse has the entries of a thing.
func NewHistoryResponse(entries []history.Entry) HistoryResponse {
	response := HistoryResponse{[]entryResponse{}}
	for _, e := range entries {
		one := entryResponse{At: Time(e.At), Did: e.Did, About: e.About}
		if e.ID != "" {
			one.By = &e.Name
		}
		response.History = append(response.History, one)
	}
	return response
}
