import type { Vertical, VerticalPattern } from '@svc/core/contracts'
import type MiniSearch from 'minisearch'

/** A team or workflow in the search index. */
export interface Listed {
  readonly kind: Candidate['kind']
  readonly name: string
  readonly description: string
}

/** The weight of a match in a name and in a description. */
const WORTH = { name: 1, description: 0.7 } as const
/** Maximum confidence of a word match; patterns reach more. */
const MOST = 0.6
/** Minimum confidence. A single common word of a longer task must not match. */
const LEAST = 0.31
/** Minimum length of words that also match as a prefix. */
const PREFIX = 4

/** Searches names and descriptions for the words of a task. Loads the search library at the first use. */
export class Finder {
  #index: { readonly key: string; readonly search: MiniSearch<Listed & { id: string }> } | undefined

  /** Candidates with some of the words, highest confidence first. */
  async find(task: Task, listed: readonly Listed[]): Promise<readonly Candidate[]> {
    const search = await this.#indexOf(listed)
    const found = search.search([...task.telling].join(' '), { prefix: word => word.length >= PREFIX, boost: { name: 2 } })
    return found
      .map(({ id, match }) => candidateOf(id as string, match, task))
      .filter(candidate => candidate.confidence >= LEAST)
      .toSorted((a, b) => b.confidence - a.confidence || (a.name < b.name ? -1 : 1))
  }

  async #indexOf(listed: readonly Listed[]) {
    const key = JSON.stringify(listed)
    if (this.#index?.key === key) return this.#index.search
    const { default: Search } = await import('minisearch')
    const search = new Search<Listed & { id: string }>({ fields: ['name', 'description'], tokenize: wordsOf })
    search.addAll(listed.map(item => ({ ...item, id: `${item.kind} ${item.name}` })))
    this.#index = { key, search }
    return search
  }
}

/** `match` maps each indexed word to the fields that contain it. A prefix matches all words that start with it. */
function candidateOf(id: string, match: Readonly<Record<string, readonly string[]>>, task: Task): Candidate {
  const [kind, name] = id.split(' ') as [Candidate['kind'], string]
  const hits = [...task.telling].flatMap(word => hitOf(word, match))
  const worth = hits.reduce((sum, hit) => sum + hit.worth, 0) / task.telling.size
  const words = hits.map(({ word }) => `"${word}"`).join(', ')
  return { kind, name, confidence: rounded(MOST * worth), reason: `its name and description contain ${words}`, trigger: null }
}

function hitOf(word: string, match: Readonly<Record<string, readonly string[]>>) {
  const terms = Object.keys(match).filter(term => term === word || (word.length >= PREFIX && term.startsWith(word)))
  if (terms.length === 0) return []
  const worth = terms.some(term => match[term]!.includes('name')) ? WORTH.name : WORTH.description
  return [{ word, worth }]
}

/** A team or workflow that can fit a task. */
export interface Candidate {
  readonly kind: 'team' | 'workflow'
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  readonly reason: string
  readonly trigger: string | null
}

/** Minimum confidence of a pattern match. The matched share of the task adds the rest. */
const SURE = 0.6

/** The candidates of the patterns of a vertical, in their order. */
export const byPatterns = ({ patterns }: Vertical, task: Task): readonly Candidate[] =>
  patterns.flatMap(pattern => patternCandidates(pattern, patternHit(pattern, task)))

interface Hit {
  readonly trigger: string
  readonly share: number
}

/** The phrase of a pattern that covers the largest share of a task. */
function patternHit({ words }: VerticalPattern, task: Task): Hit | undefined {
  const hits = words.map(trigger => ({ trigger, found: phraseWords(trigger, task) })).filter(({ found }) => found.length > 0)
  return hits.map(({ trigger, found }) => ({ trigger, share: shareOf(found, task) })).toSorted((a, b) => b.share - a.share)[0]
}

function patternCandidates({ weight = 1, team, workflow }: VerticalPattern, hit: Hit | undefined): Candidate[] {
  if (!hit) return []
  const confidence = rounded(weight * (SURE + (1 - SURE) * hit.share))
  const reported = { confidence, reason: `the task matches the pattern "${hit.trigger}"`, trigger: hit.trigger }
  return [
    ...(team === undefined ? [] : [{ kind: 'team', name: team, ...reported } as const]),
    ...(workflow === undefined ? [] : [{ kind: 'workflow', name: workflow, ...reported } as const]),
  ]
}

const rounded = (share: number): number => Math.round(share * 100) / 100

/** The words of a task. */
export interface Task {
  /** Its words in lower case. `codeReview`, `code_review` and `Code review` are equal. */
  readonly words: readonly string[]
  /** The significant words, or all words if none is significant. */
  readonly telling: ReadonlySet<string>
}

const SILENT = new Set(
  'a an and are at be by can do for from i in is it its me my of on or our please some that the this to us we what with you your'.split(
    ' '
  )
)

export function taskOf(text: string): Task {
  const words = wordsOf(text)
  const telling = words.filter(word => !SILENT.has(word))
  return { words, telling: new Set(telling.length > 0 ? telling : words) }
}

const wordsOf = (text: string): string[] =>
  text
    .normalize('NFC')
    .replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ')
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter(Boolean)

/** The words of a task that a phrase matches; empty unless all words of the phrase match. */
function phraseWords(phrase: string, { words }: Task): readonly string[] {
  const found = phrase
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}*]+/u)
    .filter(Boolean)
    .map(wanted => words.filter(word => fits(wanted, word)))
  return found.every(those => those.length > 0) ? found.flat() : []
}

const fits = (wanted: string, word: string) => (wanted.endsWith('*') ? word.startsWith(wanted.slice(0, -1)) : word === wanted)

/** The share of the significant words among these, 0 to 1. */
const shareOf = (found: Iterable<string>, { telling }: Task): number =>
  telling.size === 0 ? 0 : new Set(found).intersection(telling).size / telling.size
