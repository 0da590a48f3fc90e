import type { Vertical, VerticalPattern } from '@svc/core/contracts'
import type MiniSearch from 'minisearch'

/** A team or workflow as it is looked for. */
export interface Listed {
  readonly kind: Candidate['kind']
  readonly name: string
  readonly description: string
}

/** What a word counts for that is in a name, and in a description. */
const WORTH = { name: 1, description: 0.7 } as const
/** Words alone never make as sure as a pattern. */
const MOST = 0.6
/** What has less is no match: one word of many is in any description, and one of two, as "write" of "write a poem", in many a name. */
const LEAST = 0.31
/** Shorter words are looked for as they are, longer ones as beginnings too. */
const PREFIX = 4

/** Looks for the words of a task in names and descriptions; what it needs is loaded when it is first asked. */
export class Finder {
  #index: { readonly key: string; readonly search: MiniSearch<Listed & { id: string }> } | undefined

  /** Those that have some of its words, the surest first. */
  async find(task: Task, listed: readonly Listed[]): Promise<readonly Candidate[]> {
    const search = await this.#indexOf(listed)
    const found = search.search([...task.telling].join(' '), { prefix: word => word.length >= PREFIX, boost: { name: 2 } })
    return found
      .map(({ id, match }) => candidateOf(id as string, match, task))
      .filter(one => one.confidence >= LEAST)
      .toSorted((a, b) => b.confidence - a.confidence || (a.name < b.name ? -1 : 1))
  }

  async #indexOf(listed: readonly Listed[]) {
    const key = JSON.stringify(listed)
    if (this.#index?.key === key) return this.#index.search
    const { default: Search } = await import('minisearch')
    const search = new Search<Listed & { id: string }>({ fields: ['name', 'description'], tokenize: wordsOf })
    search.addAll(listed.map(one => ({ ...one, id: `${one.kind} ${one.name}` })))
    this.#index = { key, search }
    return search
  }
}

/** `match` has the words that were found, each with the fields it is in; a beginning stands for the words that begin so. */
function candidateOf(id: string, match: Readonly<Record<string, readonly string[]>>, task: Task): Candidate {
  const [kind, name] = id.split(' ') as [Candidate['kind'], string]
  const hits = [...task.telling].flatMap(word => hitOf(word, match))
  const worth = hits.reduce((sum, hit) => sum + hit.worth, 0) / task.telling.size
  const words = hits.map(({ word }) => `"${word}"`).join(', ')
  return { kind, name, confidence: rounded(MOST * worth), reason: `its name and description have ${words}`, trigger: null }
}

function hitOf(word: string, match: Readonly<Record<string, readonly string[]>>) {
  const terms = Object.keys(match).filter(term => term === word || (word.length >= PREFIX && term.startsWith(word)))
  if (terms.length === 0) return []
  const worth = terms.some(term => match[term]!.includes('name')) ? WORTH.name : WORTH.description
  return [{ word, worth }]
}

/** A team or workflow that may be what a task needs. */
export interface Candidate {
  readonly kind: 'team' | 'workflow'
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  readonly reason: string
  readonly trigger: string | null
}

/** How sure a pattern makes that says one word of many: the rest comes with the share of the task that it matched. */
const SURE = 0.6

/** What the patterns of a vertical name for a task, in their order. */
export const byPatterns = ({ patterns }: Vertical, task: Task): readonly Candidate[] =>
  patterns.flatMap(pattern => patternCandidates(pattern, patternHit(pattern, task)))

interface Hit {
  readonly trigger: string
  readonly share: number
}

/** The phrase of a pattern that says the most of a task. */
function patternHit({ words }: VerticalPattern, task: Task): Hit | undefined {
  const hits = words.map(trigger => ({ trigger, found: phraseWords(trigger, task) })).filter(({ found }) => found.length > 0)
  return hits.map(({ trigger, found }) => ({ trigger, share: shareOf(found, task) })).toSorted((a, b) => b.share - a.share)[0]
}

function patternCandidates({ weight = 1, team, workflow }: VerticalPattern, hit: Hit | undefined): Candidate[] {
  if (!hit) return []
  const confidence = rounded(weight * (SURE + (1 - SURE) * hit.share))
  const told = { confidence, reason: `the task matches the pattern "${hit.trigger}"`, trigger: hit.trigger }
  return [
    ...(team === undefined ? [] : [{ kind: 'team', name: team, ...told } as const]),
    ...(workflow === undefined ? [] : [{ kind: 'workflow', name: workflow, ...told } as const]),
  ]
}

const rounded = (share: number): number => Math.round(share * 100) / 100

/** A task as it is matched. */
export interface Task {
  /** Its words in lower case: `codeReview`, `code_review` and `Code review` are the same two. */
  readonly words: readonly string[]
  /** Those of them that say something: all, where none does. */
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

/** The words of a task that a phrase stands for; none unless all of the phrase's are there. */
function phraseWords(phrase: string, { words }: Task): readonly string[] {
  const found = phrase
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}*]+/u)
    .filter(Boolean)
    .map(wanted => words.filter(word => fits(wanted, word)))
  return found.every(those => those.length > 0) ? found.flat() : []
}

const fits = (wanted: string, word: string) => (wanted.endsWith('*') ? word.startsWith(wanted.slice(0, -1)) : word === wanted)

/** The share of what a task says that these words are: 0 to 1. */
const shareOf = (found: Iterable<string>, { telling }: Task): number =>
  telling.size === 0 ? 0 : new Set(found).intersection(telling).size / telling.size
