import { refusal } from '@svc/worker-pool/child'
import { messageOf, notTooLong } from './bounds.ts'

interface Input {
  readonly pattern: string
  readonly text: string
  readonly flags: string
  readonly most: number
}

type Found = {
  readonly match: string
  readonly index: number
  readonly line: number
  readonly groups: (string | null)[]
  readonly named?: Record<string, string | null>
}

export function matchRegex({ pattern, text, flags, most }: Input) {
  const matches: Found[] = []
  let [line, seen, size] = [1, 0, 0]
  for (const found of text.matchAll(compiled(pattern, flags))) {
    if (matches.length === most) return { matches, count: most, more: true }
    for (; seen < found.index; seen++) if (text[seen] === '\n') line++
    matches.push(shown(found, line))
    size += sizeOf(found)
    notTooLong(size, 'ask for fewer matches with "max_matches", or with fewer groups')
  }
  return { matches, count: matches.length, more: false }
}

function compiled(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, `${flags}g`)
  } catch (error) {
    throw refusal('REGEX_INVALID', messageOf(error), {
      hint: 'fix the pattern: JavaScript’s regular expressions are understood',
    })
  }
}

/** What a group takes in the answer even where it took no part: as many matches as there may be, with as many groups, would be millions. */
const GROUP = 5

/** About the characters of a match in the answer. */
const sizeOf = (found: RegExpExecArray) =>
  [...found, ...Object.entries(found.groups ?? {}).flat()].reduce((sum, one) => sum + (one?.length ?? 0) + GROUP, 0)

function shown(found: RegExpExecArray, line: number): Found {
  const [match, ...groups] = found.map(group => group ?? null)
  const named = Object.entries(found.groups ?? {}).map(([name, group]) => [name, group ?? null] as const)
  return { match: match ?? '', index: found.index, line, groups, ...(named.length > 0 && { named: Object.fromEntries(named) }) }
}
