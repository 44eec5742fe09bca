package parts

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows a long step; a nil writer shows nothing. A step that turns out to have nothing to do stays silent.
type progress struct {
	w     io.Writer
	what  string
	bytes bool
	bar   *progressbar.ProgressBar
}

func newProgress(w io.Writer, what string, bytes bool) *progress {
	return &progress{w: w, what: what, bytes: bytes}
}

func (p *progress) update(done, total int64) {
	if p.w == nil {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowBytes(p.bytes), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	if total > 0 {
		p.bar.ChangeMax64(max(total, done))
	}
	_ = p.bar.Set64(done)
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
