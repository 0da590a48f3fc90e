/** Whether a name is this pattern: its own characters, and any others where a `*` stands. In one pass: an expression made of many stars, a stranger's, would take for ever. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop()
  if (last === undefined) return pattern === name
  const end = name.length - last.length
  if (first.length > end || !name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Whether one of these, as a manifest's `network` says them, names a host: `api.example.org`, `api.example.org:8443`, `*.example.org`, `*`. */
export function matchesHost(declared: readonly string[], host: string): boolean {
  const bare = host.replace(/:\d+$/, '')
  return declared.some(
    one => one === '*' || one === host || one === bare || (one.startsWith('*.') && bare.endsWith(one.slice(1)))
  )
}
