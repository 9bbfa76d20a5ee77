package service

import (
	"time"

	"patchbench/config"
)

// file has the shape of a service file.
type file struct {
	State   string                   `toml:"state"`
	Store   fileStore                `toml:"store"`
	Project config.Tables[project]   `toml:"project"`
	IMAP    *fileIMAP                `toml:"imap"`
	Maildir *fileMaildir             `toml:"maildir"`
	Inbox   config.Tables[fileInbox] `toml:"inbox"`
	SMTP    *fileSMTP                `toml:"smtp"`
	List    config.Tables[list]      `toml:"list"`
	Policy  filePolicy               `toml:"policy"`
	GitHub  *fileGitHub              `toml:"github"`
	Worker  fileWorker               `toml:"worker"`
	Web     *fileWeb                 `toml:"web"`
}

type fileStore struct {
	URL          string  `toml:"url"`
	PasswordFile string  `toml:"password_file"`
	Password     literal `toml:"password"`
}

type project struct {
	Name   string        `toml:"name"`
	Repo   string        `toml:"repo"`
	Branch string        `toml:"branch"`
	Suite  string        `toml:"suite"`
	Budget time.Duration `toml:"budget"`
	Margin float64       `toml:"margin"` // percent
	Class  string        `toml:"class"`
	Remote string        `toml:"remote"`
}

type fileIMAP struct {
	Address        string  `toml:"address"`
	TLS            string  `toml:"tls"`
	User           string  `toml:"user"`
	PasswordFile   string  `toml:"password_file"`
	Password       literal `toml:"password"`
	Folder         string  `toml:"folder"`
	AllowPlaintext bool    `toml:"allow_plaintext"`
	CAFile         string  `toml:"ca_file"`
}

type fileMaildir struct {
	Path string `toml:"path"`
}

type fileInbox struct {
	Path string        `toml:"path"`
	Poll time.Duration `toml:"poll"`
}

type fileSMTP struct {
	Address        string        `toml:"address"`
	TLS            string        `toml:"tls"`
	User           string        `toml:"user"`
	PasswordFile   string        `toml:"password_file"`
	Password       literal       `toml:"password"`
	From           string        `toml:"from"`
	AllowPlaintext bool          `toml:"allow_plaintext"`
	CAFile         string        `toml:"ca_file"`
	PerHour        int           `toml:"per_hour"`
	LookFor        time.Duration `toml:"look_for"`
}

type list struct {
	Address     string            `toml:"address"`
	ID          string            `toml:"id"`
	Project     string            `toml:"project"`
	Mode        string            `toml:"mode"`
	Consent     string            `toml:"consent"`
	Tags        map[string]string `toml:"tags"`
	RequireTags []string          `toml:"require_tags"`
	IgnoreTags  []string          `toml:"ignore_tags"`
	Paths       []string          `toml:"paths"`
	Quiet       bool              `toml:"quiet"`
	Wait        time.Duration     `toml:"wait"`
	GiveUp      time.Duration     `toml:"give_up"`
}

type filePolicy struct {
	Trusted       []string      `toml:"trusted"`
	Commands      []string      `toml:"commands"`
	OptOut        []string      `toml:"opt_out"`
	AuthservID    string        `toml:"authserv_id"`
	Strangers     string        `toml:"strangers"`
	PerAuthorDay  int           `toml:"per_author_day"`
	StrangersDay  int           `toml:"strangers_day"`
	MaxAge        time.Duration `toml:"max_age"`
	ThreadCap     int           `toml:"thread_cap"`
	AutoSubmitted *bool         `toml:"auto_submitted"`
	VerifyDKIM    bool          `toml:"verify_dkim"`
}

type fileGitHub struct {
	AppID             int64                 `toml:"app_id"`
	KeyFile           string                `toml:"key_file"`
	Key               literal               `toml:"key"`
	TokenFile         string                `toml:"token_file"`
	Token             literal               `toml:"token"`
	WebhookSecretFile string                `toml:"webhook_secret_file"`
	WebhookSecret     literal               `toml:"webhook_secret"`
	BaseURL           string                `toml:"base_url"`
	Poll              time.Duration         `toml:"poll"`
	MaxFetch          config.Size           `toml:"max_fetch"`
	Repositories      map[string]repository `toml:"repositories"`
}

type repository struct {
	Project string   `toml:"project"`
	Label   string   `toml:"label"`
	Trusted []string `toml:"trusted"`
	Policy  string   `toml:"policy"`
}

type fileWorker struct {
	Class      string        `toml:"class"`
	Slots      int           `toml:"slots"`
	SandboxUID int           `toml:"sandbox_uid"`
	WorkDir    string        `toml:"work_dir"`
	Timeout    time.Duration `toml:"timeout"`
	Limits     fileLimits    `toml:"limits"`
}

type fileLimits struct {
	Memory    config.Size   `toml:"memory"`
	Disk      config.Size   `toml:"disk"`
	Output    config.Size   `toml:"output"`
	Processes int           `toml:"processes"`
	Timeout   time.Duration `toml:"timeout"`
}

type fileWeb struct {
	Listen        string `toml:"listen"`
	URL           string `toml:"url"`
	WebhookListen string `toml:"webhook_listen"`
}

// literal is a key that people write although a secret must not stand in the
// file: it is known so that the fault can say where the secret belongs. What was
// given is not kept.
type literal bool

// UnmarshalTOML takes anything.
func (l *literal) UnmarshalTOML(any) error {
	*l = true
	return nil
}
