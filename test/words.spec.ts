import { globSync } from 'node:fs'
import { expect } from 'chai'
import { textOf } from './support/source.ts'

/** Words of the first release that the field does not use, in prose and in names. The list grows as they are replaced. */
const WORDS: Readonly<Record<string, RegExp>> = { mend: /\b[Mm]end(s|ed|ing)?\b|_MEND\b|[a-z]Mend(s|ed)?\b|\bmendOf\b/ }
/** The changelog tells users of the last release what became of a word. */
const ALLOWED = /^CHANGELOG\.md:|^test\/words\.spec\.ts:/

const files = ['{core,libs,plugins,cli,docs,examples,scripts,test}/**/*.{ts,mjs,js,md,yaml}', '*.md'].flatMap(pattern =>
  globSync(pattern, { exclude: ['**/node_modules/**', '**/dist/**'] })
)

const placesOf = (word: RegExp) =>
  files.flatMap(file =>
    textOf(file)
      .split('\n')
      .flatMap((line, at) => (word.test(line) ? [`${file}:${at + 1}: ${line.trim().slice(0, 80)}`] : []))
  )

describe('the words of this repository', () => {
  for (const [word, form] of Object.entries(WORDS))
    it(`do without "${word}"`, () => {
      expect(placesOf(form).filter(place => !ALLOWED.test(place))).to.deep.equal([])
    })

  it('are looked for where they stand', () => {
    expect(placesOf(/\bhint\b/).some(place => place.startsWith('core/kernel/src/'))).to.equal(true)
  })
})
