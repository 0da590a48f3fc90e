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

export const wordsOf = (text: string): string[] =>
  text
    .normalize('NFC')
    .replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ')
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter(Boolean)

/** The words of a task that a phrase stands for; none unless all of the phrase's are there. */
export function phraseWords(phrase: string, { words }: Task): readonly string[] {
  const found = phrase
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}*]+/u)
    .filter(Boolean)
    .map(wanted => words.filter(word => fits(wanted, word)))
  return found.every(those => those.length > 0) ? found.flat() : []
}

const fits = (wanted: string, word: string) => (wanted.endsWith('*') ? word.startsWith(wanted.slice(0, -1)) : word === wanted)

/** The share of what a task says that these words are: 0 to 1. */
export const shareOf = (found: Iterable<string>, { telling }: Task): number =>
  telling.size === 0 ? 0 : new Set(found).intersection(telling).size / telling.size
