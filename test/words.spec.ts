import { basename } from 'node:path'
import { expect } from 'chai'
import { blanked, filesBelow, textOf } from './support/source.ts'

/** Words of the first release that the field does not use: in documents, comments, errors, help texts and log lines. */
const PROSE = ['mend(s|ed|ing)?', 'nobody', 'whoever', 'told', 'in vain', 'estate', 'crew', 'house', 'heirs?']
/** Exported names, files and packages that were named in no standard word: the whole name. */
const NAMES = new Set(
  `House Crew hire Desk Seat Holding Board Herald Heralds News Chores Bell Lull Places Seats Crowd Tally Seldom Breath Shelf Ground Told Place Kept Held Found Known Drive
  told tell toldOf estate heir bequeath afford adapted restless acting opening stamps masks furnish standing lent-uses`
    .trim()
    .split(/\s+/)
)
/** Parts of names, at the humps of camel case, that are wrong wherever they stand. */
const PARTS = new Set([
  'House',
  'Crew',
  'Estate',
  'Heir',
  'Herald',
  'Heralds',
  'Mend',
  'Lull',
  'Crowd',
  'Seldom',
  'Parts',
  'Told',
  'Fault',
  'Faults',
  'Trouble',
  'Wish',
  'Wishes',
  'house',
  'crew',
  'mend',
])

/** Names of the packages of the first release. */
const PACKAGES =
  /^@svc\/(space|wire|roots|guarded-fetch|bounded-work|child|upstream|sse|plugin-set|command-line|tool-parts|tool-schema|model-names|address)$/

/** The changelog tells users of the last release what became of a word; this file lists them. */
const ALLOWED = /^CHANGELOG\.md:|^test\/words\.spec\.ts:/

const FOLDERS = ['core', 'libs', 'plugins', 'cli', 'client', 'docs', 'examples', 'scripts', 'bench', 'test']
const texts = FOLDERS.flatMap(folder => filesBelow(folder, /\.(m?ts|m?js|md|ya?ml)$|\/package\.json$/))
const root = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'svc.config.ts']

/** The text of a file without its code: comments, and what stands in quotes. */
function proseOf(file: string): string {
  const text = textOf(file)
  if (!/\.(m?ts|m?js)$/.test(file)) return text
  const code = blanked(text)
  return text
    .split('')
    .map((char, at) => (code[at] === char && char !== '\n' ? ' ' : char))
    .join('')
}

const isTest = (file: string) => /(^|\/)(test|fixtures)\//.test(file)

function linesWith(pattern: RegExp, files: readonly string[]): string[] {
  const found = files.flatMap(file =>
    proseOf(file)
      .split('\n')
      .flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1}: ${line.trim().slice(0, 100)}`] : []))
  )
  return found.filter(line => !ALLOWED.test(line))
}

/** The titles of tests: of mocha, and of the samples and kits that become tests. */
const TITLES = /(?:^|[\s.])(?:(?:describe|it|context)(?:\.\w+)?\(|(?:rule|title):)\s*(?:'([^'\n]*)|"([^"\n]*)|`([^`\n]*))/g

const titlesOf = (file: string): string[] =>
  [...textOf(file).matchAll(TITLES)].map(match => match[1] ?? match[2] ?? match[3] ?? '')

const EXPORTS = /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm

/** The names of a file that others see: its own, and what it exports. */
function namesOf(file: string): string[] {
  const own = basename(file)
    .replace(/\.\w+$/, '')
    .replace(/\.(spec|test|test-d)$/, '')
  return [own, ...(file.endsWith('.ts') ? [...blanked(textOf(file)).matchAll(EXPORTS)].map(match => match[1]!) : [])]
}

const partsOf = (name: string) => name.split(/[-_.]|(?<=[a-z0-9])(?=[A-Z])/)
const isPrivateWord = (name: string) => NAMES.has(name) || name.endsWith('-parts') || partsOf(name).some(part => PARTS.has(part))

describe('the words of this repository', () => {
  for (const word of PROSE)
    it(`do without "${word}" in documents, comments, errors, help texts and log lines`, () => {
      const shipped = [...texts.filter(file => !isTest(file)), ...root]
      expect(linesWith(new RegExp(`\\b${word}\\b`, 'i'), shipped).join('\n')).to.equal('')
    })

  it('are those of the titles of tests', () => {
    const words = new RegExp(`\\b(${PROSE.join('|')})\\b`, 'i')
    const tests = texts.filter(file => file.endsWith('.ts') && (isTest(file) || file.startsWith('core/testing/')))
    const found = tests.flatMap(file =>
      titlesOf(file)
        .filter(title => words.test(title))
        .map(title => `${file}: ${title}`)
    )
    expect(found.join('\n')).to.equal('')
  })

  it('name what is exported, files and packages in the words of the field', () => {
    const found = texts.flatMap(file =>
      namesOf(file)
        .filter(isPrivateWord)
        .map(name => `${file}: ${name}`)
    )
    expect(found.join('\n')).to.equal('')
  })

  it('name packages in the words of the field', () => {
    const names = texts.filter(file => file.endsWith('/package.json')).map(file => String(JSON.parse(textOf(file)).name))
    expect(names.filter(name => PACKAGES.test(name))).to.deep.equal([])
  })

  it('are looked for where they stand', () => {
    expect(titlesOf('test/words.spec.ts')).to.include('are looked for where they stand')
    expect(linesWith(/\bplugin\b/, ['core/kernel/src/errors.ts'])).to.not.deep.equal([])
    expect(namesOf('core/kernel/src/token.ts')).to.include('CallContext')
    expect(isPrivateWord('chatHouse')).to.equal(true)
  })
})
