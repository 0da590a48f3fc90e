import { messageOf } from '@svc/core'
import { globInvalid } from './errors.ts'

const LONGEST = 1024
/** Maximum nesting of braces, because each level can multiply the pattern. */
const DEEPEST = 5

/**
 * Compiles a glob pattern: `*`, `**`, `?`, `[a-z]`, `{a,b}`, `\` before a plain character. A pattern without a slash matches
 * names in any folder. Matching takes linear time (RE2), because patterns come from models. Throws GLOB_INVALID.
 */
export async function compileGlob(pattern: string): Promise<(path: string) => boolean> {
  if (pattern.length > LONGEST) throw globInvalid(pattern, `it is longer than ${LONGEST} characters`)
  const written = pattern.replace(/^\.?\//, '')
  if (written === '') throw globInvalid(pattern, 'it is empty')
  const source = sourceOf(written.includes('/') ? written : `**/${written}`, pattern)
  const { RE2JS } = await import('re2js')
  try {
    const compiled = RE2JS.compile(`^(?:${source})$`, RE2JS.DOTALL)
    return path => compiled.test(path)
  } catch (error) {
    throw globInvalid(pattern, messageOf(error))
  }
}

/** The pattern as a regular expression of RE2. */
function sourceOf(glob: string, pattern: string): string {
  let source = ''
  let depth = 0
  for (let at = 0; at < glob.length; ) {
    const rest = glob.slice(at)
    const [token, translated] = tokenOf(rest, at === 0 || (depth > 0 ? /[/{,]/ : /\//).test(glob[at - 1]!), depth)
    if (token === '{' && ++depth > DEEPEST) throw globInvalid(pattern, 'its braces are nested too deeply')
    if (token === '}' && depth > 0) depth--
    if (token === '[') throw globInvalid(pattern, 'a [ is not closed')
    source += translated
    at += token.length
  }
  if (depth > 0) throw globInvalid(pattern, 'a { is not closed')
  return source
}

/** Text that matches `form` becomes `source` in RE2: anywhere, at the start of a name, or within braces. The first match counts. */
interface Token {
  readonly form: RegExp
  readonly source: string | ((found: RegExpExecArray) => string)
  readonly where?: 'begins' | 'braces'
}

const TOKENS: readonly Token[] = [
  { form: /^\*\*\/(\*\*\/)*/, source: '(?:.*/)?', where: 'begins' },
  { form: /^\*\*+$/, source: '.+', where: 'begins' },
  { form: /^\*+/, source: '[^/]*' },
  { form: /^\?/, source: '[^/]' },
  {
    form: /^\[([!^]?)(\]?(?:[^\]\\/]|\\.)*)\]/,
    source: ([, not, range]) => `[${not ? '^/' : ''}${range!.replace(/[[\]&~^]/g, '\\$&')}]`,
  },
  { form: /^\{/, source: '(?:' },
  { form: /^\}/, source: ')', where: 'braces' },
  { form: /^,/, source: '|', where: 'braces' },
]

/** The next token of a pattern and its RE2 source. */
function tokenOf(rest: string, begins: boolean, depth: number): [token: string, source: string] {
  for (const { form, source, where } of TOKENS) {
    const found = where === undefined || (where === 'begins' ? begins : depth > 0) ? form.exec(rest) : null
    if (found) return [found[0], typeof source === 'string' ? source : source(found)]
  }
  const plain = /^\\?./su.exec(rest)![0]
  return [plain, quoted(plain.length > 1 && plain.startsWith('\\') ? plain.slice(1) : plain)]
}

const quoted = (text: string) => text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')
