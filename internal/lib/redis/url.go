package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// Parameters of a URL: the address of a further node or Sentinel, the name that Sentinels
// have for the servers, and what a Sentinel asks for.
const (
	addressParameter  = "addr"
	setParameter      = "master_set"
	userParameter     = "sentinel_user"
	passwordParameter = "sentinel_password"
)

// Check reports what is wrong with a URL. The URL is in no error.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// Place names a Redis for people, without a password.
func Place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "with a URL that cannot be read"
	}
	query := u.Query()
	query.Del(userParameter)
	query.Del(passwordParameter)
	shown, err := url.QueryUnescape(query.Encode())
	if err != nil {
		shown = query.Encode()
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: shown}).String()
}

func parse(address string) (rueidis.ClientOption, error) {
	const example = "write one such as redis://127.0.0.1:6379"
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return rueidis.ClientOption{}, errors.New("not a URL: " + example)
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return rueidis.ClientOption{}, fmt.Errorf("not a URL of Redis, whose scheme is redis, rediss or unix: %s", example)
	case u.Scheme != "unix" && u.Hostname() == "":
		return rueidis.ClientOption{}, errors.New("the URL has no host: " + example)
	case u.Scheme != "unix" && u.Port() != "" && !isPort(u.Port()):
		return rueidis.ClientOption{}, errors.New("the URL's port is not one from 1 to 65535: " + example)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return rueidis.ClientOption{}, errors.New("not a URL: " + example)
	}
	if err := checkParameters(u, query); err != nil {
		return rueidis.ClientOption{}, err
	}
	option, err := rueidis.ParseURL(address)
	if err != nil {
		return rueidis.ClientOption{}, errors.New("not a URL of Redis: " + example)
	}
	option.Sentinel.Username, option.Sentinel.Password = query.Get(userParameter), query.Get(passwordParameter)
	isSentinel, isOne := option.Sentinel.MasterSet != "", len(option.InitAddress) == 1
	option.ForceSingleClient = isOne && !isSentinel
	if !isOne && !isSentinel && option.SelectDB != 0 {
		return rueidis.ClientOption{}, errors.New("a Cluster has no database but 0: leave the path of the URL out")
	}
	if option.TLSConfig != nil && (!isOne || isSentinel) {
		option.TLSConfig.ServerName = "" // each server has its own
	}
	option.Sentinel.TLSConfig = option.TLSConfig
	return option, nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// checkParameters finds mistakes in the parameters of a URL, of which the library
// overlooks many.
func checkParameters(u *url.URL, query url.Values) error {
	for name := range query {
		if !slices.Contains([]string{addressParameter, setParameter, userParameter, passwordParameter}, name) {
			return errors.New("the URL has a parameter that is not known: known are addr and master_set, sentinel_user and sentinel_password")
		}
	}
	if u.Scheme == "unix" && len(query) > 0 {
		return errors.New("a socket is one server, so its URL has no parameters: leave them out")
	}
	for _, address := range query[addressParameter] {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || !isPort(port) {
			return errors.New("addr is not an address: write a host and a port, such as addr=redis-2.example.com:6379")
		}
	}
	isSentinel := query.Get(setParameter) != ""
	switch {
	case query.Has(setParameter) && !isSentinel:
		return errors.New("master_set is empty: write the name that the Sentinels have for the servers, such as master_set=mymaster")
	case !isSentinel && (query.Has(userParameter) || query.Has(passwordParameter)):
		return errors.New("sentinel_user and sentinel_password need master_set, such as master_set=mymaster")
	}
	return nil
}
