import type MiniSearch from 'minisearch'
import type { Candidate } from './patterns.ts'
import { rounded } from './patterns.ts'
import { type Task, wordsOf } from './words.ts'

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
