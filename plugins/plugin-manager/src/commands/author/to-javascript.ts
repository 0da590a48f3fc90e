import { stripTypeScriptTypes } from 'node:module'

const FOR_JAVASCRIPT = /^\s*\/\/js: /

/** The TypeScript of a template: without what is meant for JavaScript alone. */
export const typed = (code: string): string =>
  code
    .split('\n')
    .filter(line => !FOR_JAVASCRIPT.test(line))
    .join('\n')

/**
 * The same in JavaScript: types become the JSDoc of the lines that begin with `//js:`. Node blanks types with blanks, so that lines keep their places; here the
 * holes are closed.
 */
export function toJavaScript(code: string): string {
  const lines = quietly(() => stripTypeScriptTypes(code)).split('\n')
  return lines
    .filter((line, at) => !isHole(line) && !(isLonely(line) && isHole(lines[at + 1] ?? '')))
    .map(line =>
      line
        .replace(/\/\/js: /, '')
        .replace(/(?<=\S) {2,}(?=[(),;:])/g, '')
        .replace(/(?<=\S) {2,}/g, ' ')
        .trimEnd()
    )
    .join('\n')
    .replaceAll(/(from '\.{1,2}\/[\w/-]+)\.ts'/g, "$1.js'")
    .replaceAll(/import \{ ([^}]*?),? \} from/g, 'import { $1 } from')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
}

/** Node warns that it may yet change how it strips: the templates are ours, and tests make all of them. */
function quietly<T>(work: () => T): T {
  const before = Object.getOwnPropertyDescriptor(process, 'emitWarning')!
  process.emitWarning = () => {}
  try {
    return work()
  } finally {
    Object.defineProperty(process, 'emitWarning', before)
  }
}

/** What was a line of types: an empty line is one that the author meant. */
const isHole = (line: string) => line !== '' && line.trim() === ''
/** A comment, which is left alone when what it speaks of is gone. */
const isLonely = (line: string) => /^\s*\/\*\*.*\*\/$/.test(line)
