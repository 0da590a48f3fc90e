import { builtinModules } from 'node:module'
import { nameInvalid } from './errors.ts'

/** The words by which a new plugin calls its parts, all made of the package's name. */
export interface PluginWords {
  /** `@me/svc-plugin-dice-box`. */
  readonly package: string
  /** `dice-box`. */
  readonly kebab: string
  /** `dice_box`: what a model reads. */
  readonly snake: string
  /** `diceBox`. */
  readonly camel: string
  /** `DiceBox`. */
  readonly pascal: string
}

const NPM_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/
const LONGEST = 214
const RESERVED = ['node_modules', 'favicon.ico', ...builtinModules]

/** Checks a name by the rules of npm and makes the words of it. Throws NAME_INVALID. */
export function wordsOf(name: string): PluginWords {
  const why = faultOf(name)
  if (why !== undefined) throw nameInvalid(name, why)
  const parts = bare(name)
    .split(/[^a-z0-9]+/)
    .filter(part => part !== '')
  const pascal = parts.map(part => part[0]!.toUpperCase() + part.slice(1)).join('')
  return {
    package: name,
    kebab: parts.join('-'),
    snake: parts.join('_'),
    camel: pascal[0]!.toLowerCase() + pascal.slice(1),
    pascal,
  }
}

/** Without scope, and without what says that it is a plugin. */
const bare = (name: string) => name.replace(/^@[^/]*\//, '').replace(/^svc-plugin-(?=.)/, '')

/** What is wrong with the name of a package that is to be published; `undefined`: nothing. */
export function faultOf(name: string): string | undefined {
  if (name.length > LONGEST) return `a name has ${LONGEST} characters at most`
  if (!NPM_NAME.test(name))
    return 'a package has a name of a-z, 0-9, "-", "." and "_", like svc-plugin-weather or @me/svc-plugin-weather'
  if (name.startsWith('@svc/')) return 'names that begin with @svc/ are those of svc itself'
  if (RESERVED.includes(name)) return 'Node and npm have that name already'
  return /^[a-z]/.test(bare(name)) ? undefined : 'behind scope and "svc-plugin-" it must begin with a letter'
}

/** Puts the words in place of those of the templates. */
export const withWords = (text: string, words: PluginWords): string =>
  text
    .replaceAll('svc-plugin-sample', words.package)
    .replaceAll('SAMPLE_WORD', words.snake.toUpperCase())
    .replaceAll('sample_word', words.snake)
    .replaceAll('sample-word', words.kebab)
    .replaceAll('SampleWord', words.pascal)
    .replaceAll('sampleWord', words.camel)
