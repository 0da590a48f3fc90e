/** A part of a text: in both, only in the earlier one, or only in the later one. */
export interface Part {
  readonly kind: 'same' | 'gone' | 'new'
  readonly text: string
}

/** More pieces than this are compared only at their beginning and end. */
const MOST_PIECES = 1_500

/** What differs between two texts: by words, or by lines if they have several. */
export function differing(before: string, after: string): Part[] {
  const cut = before.includes('\n') || after.includes('\n') ? linesOf : wordsOf
  return joined(compare(cut(before), cut(after)))
}

const wordsOf = (text: string) => text.match(/\s+|[^\s]+/g) ?? []
const linesOf = (text: string) => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

function compare(before: readonly string[], after: readonly string[]): Part[] {
  const least = Math.min(before.length, after.length)
  let begin = 0
  while (begin < least && before[begin] === after[begin]) begin++
  let end = 0
  while (end < least - begin && before.at(-1 - end) === after.at(-1 - end)) end++
  const same = (text: string): Part => ({ kind: 'same', text })
  return [
    ...before.slice(0, begin).map(same),
    ...middle(before.slice(begin, before.length - end), after.slice(begin, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ]
}

/** The longest common sequence, as a table of its lengths. */
function middle(before: readonly string[], after: readonly string[]): Part[] {
  const gone = (text: string): Part => ({ kind: 'gone', text })
  const fresh = (text: string): Part => ({ kind: 'new', text })
  if (before.length + after.length > MOST_PIECES) return [...before.map(gone), ...after.map(fresh)]
  const width = after.length + 1
  const lengths = new Uint16Array((before.length + 1) * width)
  for (let at = before.length - 1; at >= 0; at--)
    for (let to = after.length - 1; to >= 0; to--)
      lengths[at * width + to] =
        before[at] === after[to]
          ? lengths[(at + 1) * width + to + 1]! + 1
          : Math.max(lengths[(at + 1) * width + to]!, lengths[at * width + to + 1]!)
  const parts: Part[] = []
  let [at, to] = [0, 0]
  while (at < before.length && to < after.length) {
    if (before[at] === after[to]) {
      parts.push({ kind: 'same', text: before[at]! })
      at++
      to++
    } else if (lengths[(at + 1) * width + to]! >= lengths[at * width + to + 1]!) parts.push(gone(before[at++]!))
    else parts.push(fresh(after[to++]!))
  }
  return [...parts, ...before.slice(at).map(gone), ...after.slice(to).map(fresh)]
}

function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = []
  for (const part of parts) {
    const last = all.at(-1)
    if (last?.kind === part.kind) all[all.length - 1] = { kind: part.kind, text: last.text + part.text }
    else all.push(part)
  }
  return all
}
