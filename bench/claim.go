package bench

// Claim is a number that the author of a series gives for what it does, and
// what was measured of it here. Its JSON form is an entry of "claims".
type Claim struct {
	// N is the patch whose commit message makes the claim, 0 for the cover letter.
	N int `json:"n"`
	// Line is where it stands in that text, from 1.
	Line int `json:"line"`
	// Text is the sentence or the lines that were read, with single blanks.
	Text string `json:"text"`
	// Subject is the label that stands beside the numbers: a table's row, a
	// benchmark of hyperfine. "" if there is only the sentence.
	Subject string `json:"subject"`
	// Quantity is what the numbers count: time, wall, cpu, user, sys, memory,
	// throughput, or a noun of the text ("calls"). "" if it is not said.
	Quantity string `json:"quantity"`
	// Unit is that of Before and After: "s", "B", "1", or "" if it is not said.
	Unit   string   `json:"unit"`
	Before *float64 `json:"before"` // nil where only a ratio is given
	After  *float64 `json:"after"`
	// Change is after/before - 1, of the quantity: "2x faster" is -0.5.
	Change float64 `json:"change"`

	// Benchmark (as RowName) and Metric are the row that the claim is held
	// against, "" if none fits.
	Benchmark string `json:"benchmark"`
	Metric    string `json:"metric"`
	// Measured is the change of that row, by the patch or for a cover letter by
	// the whole series, with its 95 % interval; nil where there is none.
	Measured *float64     `json:"measured"`
	Lo       *float64     `json:"lo"`
	Hi       *float64     `json:"hi"`
	Verdict  ClaimVerdict `json:"verdict"`
}

// ClaimVerdict says how a claim compares with what was measured.
type ClaimVerdict string

// What becomes of a claim.
const (
	Confirmed       ClaimVerdict = "confirmed"
	Smaller         ClaimVerdict = "smaller" // it is there, and smaller than claimed
	Larger          ClaimVerdict = "larger"
	Opposite        ClaimVerdict = "opposite"     // the change goes the other way
	NotSeen         ClaimVerdict = "not-seen"     // measured, and nothing changed
	Undecided       ClaimVerdict = "unclear"      // the measurement allows the claim and its absence
	ClaimUnmeasured ClaimVerdict = "not-measured" // no row fits, or the row has no figures
)
