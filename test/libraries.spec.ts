import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { blanked, filesBelow, packagesBelow, ROOT, textOf } from './support/source.ts'

const TS = /\.m?ts$/
const sourceOf = (folder: string) => (existsSync(join(ROOT, folder, 'src')) ? filesBelow(`${folder}/src`, TS) : [])
const SHIPPED = [
  ...filesBelow('core', TS).filter(file => !file.includes('/test/')),
  ...[...packagesBelow('libs'), ...packagesBelow('plugins'), 'cli', 'client'].flatMap(sourceOf),
]

/** Fields of protocols that begin with an underscore. */
const DATA = ['_meta']
const GUARD = 'reports in the process of an isolated plugin what that plugin reaches for: the one purpose of this file'
/** Files that break a rule, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'cli/src/oclif.ts': 'the manual of oclif says to set its settings before it runs',
  'core/runtime/isolation/guard.ts': GUARD,
  'core/runtime/isolation/tunnels.ts': 'connects the sockets of an isolated plugin, where every client library opens its own',
  'core/testing/src/reach.ts': 'sees the connections of a plugin in this process; the diagnostics channel of Node names no host',
  'libs/provider-http/src/undici/env-http-proxy-agent.ts':
    'the entry of undici takes twice the time and 12 MiB more; decision 009',
  'libs/provider-http/src/undici/pool.ts': 'the same',
  'plugins/api/http/src/refusal.ts': 'Node has no other way from a socket to the answer that it carries',
  'plugins/sandbox/quickjs/src/thread/engine.ts': 'the types of the package are those of its CommonJS form',
  'plugins/tools/text/src/work.ts': 'the parser is given tables without inherited names; its manual says to change them',
  'plugins/tools/web/src/markdown.ts': 'two packages describe the same node of a document in types of their own',
}

/** A place in a file, with the name of the rule that it breaks. */
interface Found {
  readonly rule: 'private member' | 'member replaced' | 'fake object' | 'inner file'
  readonly line: number
  readonly text: string
}

const IMPORT = /\bimport\s+(?:type\s+)?([^'"`;()]*?)\s+from\s*(['"])([^'"\n]+)\2/g
const LATE_IMPORT = /\b(?:const|let)\s+(\{[^}]*\}|\w+)\s*=\s*await\s+import\(\s*(['"])([^'"\n]+)\2/g
const ASSIGNS = '\\s*(?:\\?\\?|\\|\\||&&|[-+*/])?=(?![=>])'

/** A file in a folder of a package that its author keeps for itself. */
const INNER_FILE = /\bfrom\s+'(?!\.|node:|#)(?:@[\w.-]+\/)?[\w.-]+\/(?:lib|src|dist|build|cjs|esm|internal)\//

/** The names that a file has from packages of others, and from Node. */
function foreignNames(text: string): string[] {
  const code = blanked(text, 'strings')
  return [...code.matchAll(IMPORT), ...code.matchAll(LATE_IMPORT)]
    .filter(([, , , from = '']) => !/^(\.|#|@svc\/)/.test(from))
    .flatMap(([, clause = '']) => clause.replace(/\btype\b/g, '').split(/[{},]/))
    .map(name =>
      name
        .split(/\s+as\s+|:/)
        .at(-1)!
        .trim()
    )
    .filter(name => /^\w+$/.test(name))
}

/** Where a file uses a library other than through its public interface. */
function misuses(text: string): Found[] {
  const code = blanked(text)
  const names = foreignNames(text)
  const isForeign = new RegExp(`^(?:${names.join('|')})$`)
  const made = [...code.matchAll(/\b(?:const|let)\s+(\w+)\s*=\s*(?:await\s+)?new\s+\(?(\w+)/g)].flatMap(
    ([, name = '', maker = '']) => (isForeign.test(maker) ? [name] : [])
  )
  const all = [...names, ...made].join('|')
  const rules: [Found['rule'], RegExp][] = [
    ['private member', new RegExp(`(?:\\.|\\[['"\`])(?!(?:${DATA.join('|')})\\b)_[a-zA-Z]\\w*`)],
  ]
  if (all !== '') {
    rules.push(
      [
        'member replaced',
        new RegExp(`\\bObject\\.(?:assign|defineProperty|defineProperties|setPrototypeOf)\\(\\s*(?:${all})\\b`),
      ],
      ['member replaced', new RegExp(`(?<![.\\w])(?:${all})\\.(?!on[a-z]+\\b)[\\w.]+${ASSIGNS}`)],
      ['fake object', new RegExp(`\\bas unknown as (?:${all})\\b`)]
    )
  }
  const innerFiles = blanked(text, 'strings')
    .split('\n')
    .flatMap((line, at): Found[] => (INNER_FILE.test(line) ? [{ rule: 'inner file', line: at + 1, text: line.trim() }] : []))
  return code
    .split('\n')
    .flatMap((line, at) =>
      rules.flatMap(([rule, pattern]) => (pattern.test(line) ? [{ rule, line: at + 1, text: line.trim() }] : []))
    )
    .concat(innerFiles)
}

describe('how libraries are used', () => {
  it('is by their public interface: no private member, replaced member, fake object or inner file', () => {
    const found = SHIPPED.filter(file => EXCEPTIONS[file] === undefined).flatMap(file =>
      misuses(textOf(file)).map(({ rule, line, text }) => `${file}:${line} ${rule}: ${text}`)
    )
    expect(found).to.deep.equal([])
  })

  it('reports each kind of misuse', () => {
    const rulesIn = (text: string) => misuses(text).map(misuse => misuse.rule)
    expect(rulesIn("import Koa from 'koa'\nconst app = new Koa()\nObject.assign(app, { handleRequest })")).to.deep.equal([
      'member replaced',
    ])
    expect(rulesIn("import { Hook as Base } from 'tapable'\nBase.prototype.compile = mine")).to.deep.equal(['member replaced'])
    expect(rulesIn("const { Parser } = await import('p')\nconst one = new Parser()\none.consts = {}")).to.deep.equal([
      'member replaced',
    ])
    expect(rulesIn("import type { ServerResponse } from 'node:http'\nsend(x as unknown as ServerResponse)")).to.deep.equal([
      'fake object',
    ])
    expect(rulesIn("import Pool from 'undici/lib/dispatcher/pool.js'")).to.deep.equal(['inner file'])
    expect(
      rulesIn("import { Pool } from 'undici'\nimport { validate } from '@seriousme/openapi-schema-validator'")
    ).to.deep.equal([])
    expect(rulesIn('socket._httpMessage.end()')).to.deep.equal(['private member'])
    expect(
      rulesIn(
        "import { Client } from 'sdk'\nconst c = new Client()\nc.onerror = log\nif (c.name === params._meta) use(c)\n// c._x = 1"
      )
    ).to.deep.equal([])
  })
})
