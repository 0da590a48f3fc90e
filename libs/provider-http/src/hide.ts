/** Shorter ones would blank out ordinary words. */
const SHORTEST = 6
const LONGEST_WORDS = 500
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i

/** What must never be told: the given secrets, and the values of headers that carry one. */
export function secretsOf(secrets: readonly string[], headers: Readonly<Record<string, string>>): readonly string[] {
  const carried = Object.entries(headers).flatMap(([name, value]) =>
    SECRET_HEADER.test(name) ? [value, value.replace(/^\S+\s+/, '')] : []
  )
  const all = [...secrets, ...carried].filter(secret => secret.length >= SHORTEST)
  // the longest first: one may be a part of another
  return [...new Set(all.flatMap(formsOf))].sort((a, b) => b.length - a.length)
}

const formsOf = (secret: string) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]

/** Makes words of an upstream fit to be told: without secrets, in one line, not endless. */
export function createHide(secrets: readonly string[]): (text: string) => string {
  return text => {
    const clean = secrets.reduce((words, secret) => words.replaceAll(secret, '[secret]'), text)
    // oxlint-disable-next-line no-control-regex -- they are what must go
    const line = clean.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').trim()
    return line.length > LONGEST_WORDS ? `${line.slice(0, LONGEST_WORDS).toWellFormed()}…` : line
  }
}
