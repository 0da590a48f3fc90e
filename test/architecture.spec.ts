import { existsSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Manifest, Plugin } from '@svc/core'
import * as contracts from '@svc/core/contracts'
import { expect } from 'chai'
import {
  blanked,
  filesBelow,
  functionsOf,
  type ImportFound,
  importsOf,
  median,
  packagesBelow,
  ROOT,
  textOf,
} from './support/source.ts'

interface Package {
  readonly name: string
  readonly svc?: Pick<Manifest, 'api' | 'kind' | 'runtime' | 'permissions'>
  readonly dependencies?: object
  readonly peerDependencies?: object
  readonly optionalDependencies?: object
}
const packageOf = (folder: string) => JSON.parse(textOf(`${folder}/package.json`)) as Package
/** The page of the console: it runs in browsers, and is checked by its own tsconfig. */
const PAGE = 'plugins/api/console/page'
const PLUGINS = packagesBelow('plugins').filter(folder => folder !== PAGE)
/** It installs, checks and tests plugins: plans, manifests and kits are its subject, and its tests run the command line. */
const MANAGER = 'plugins/admin/plugin-manager'
const LIBS = packagesBelow('libs')
/** One YAML file each, run by test/verticals.spec.ts. */
const isData = (folder: string) => packageOf(folder).svc?.runtime === 'vertical'
const TS = /\.m?ts$/
const source = (folder: string) => (existsSync(join(ROOT, folder, 'src')) ? filesBelow(`${folder}/src`, TS) : [])
const CORE = filesBelow('core', TS).filter(file => !file.includes('/test/'))
const KERNEL_FOLDERS = ['core/kernel/src', 'core/kernel/config', 'core/kernel/loading']
const KERNEL = KERNEL_FOLDERS.flatMap(folder => filesBelow(folder, TS))
/** The entry of a process that the host starts: the only one outside the command line. */
const CHILD = 'core/runtime/isolation/isolate-child.ts'
const SHIPPED = [...CORE, ...[...LIBS, ...PLUGINS, 'cli', 'client'].flatMap(source)]

/** Every import of these files that breaks a rule, as `file:line imports …`. */
const imports = (files: readonly string[], isBad: (importFound: ImportFound, file: string) => boolean) =>
  files.flatMap(file =>
    importsOf(file)
      .filter(item => isBad(item, file))
      .map(item => `${file}:${item.line} imports ${item.from}`)
  )

/** Every line of these files whose code (no comment, no text) matches. */
const places = (files: readonly string[], pattern: RegExp, keep: 'strings' | 'nothing' = 'nothing') =>
  files.flatMap(file =>
    blanked(textOf(file), keep)
      .split('\n')
      .flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1} ${line.trim()}`] : []))
  )

const STATUS_TABLE = /\b[A-Z]+(_[A-Z]+)+['"]?\]?\s*[:,]\s*\[?\s*[45]\d\d\b/

const leaves = (from: string, file: string, folder: string) =>
  from.startsWith('.') && !join(dirname(file), from).startsWith(`${folder}/`)
const packageIn = (from: string) =>
  from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')
const declared = (folder: string) => {
  const { dependencies, peerDependencies, optionalDependencies } = packageOf(folder)
  return new Set(Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }))
}
/** The projects that the build of this one refers to, over others too. */
const referencesOf = (file: string, seen = new Set<string>()): readonly string[] => {
  const { references = [] } = JSON.parse(textOf(file)) as { readonly references?: readonly { readonly path: string }[] }
  for (const path of references.map(reference => join(dirname(file), reference.path)))
    if (!seen.has(path)) referencesOf(path, seen.add(path))
  return [...seen]
}
const undeclared = (folder: string) => {
  const known = declared(folder)
  const { name } = packageOf(folder)
  return imports(
    source(folder),
    ({ from }) => !from.startsWith('.') && !from.startsWith('node:') && packageIn(from) !== name && !known.has(packageIn(from))
  )
}

/** Test support of the repository that tests of plugins import. */
const SHARED_SUPPORT = /\/test\/support\/(bus-member|needs|hostile|mcp-crashes|plugin-folder|statements)\.ts$/
const isShared = (from: string, folder: string) =>
  folder === MANAGER ? /^(\.\.\/)+(cli\/)?test\/support\/[\w-]+\.ts$/.test(from) : SHARED_SUPPORT.test(from)
/** The one plugin with a library for the authors of plugins. */
const LIBRARY_ENTRY = '@svc/plugin-mcp-client/client'
/** Another plugin, or the command line: only commands and tests import its base class and what runs them. */
const isOther = (from: string, file: string, folder: string) =>
  /^@svc\/(plugin-(?!kit($|\/))|cli)/.test(from) &&
  from !== LIBRARY_ENTRY &&
  packageIn(from) !== packageOf(folder).name &&
  !(/^@svc\/cli\/(command|program)$/.test(from) && /\/(src\/commands(\/|\.ts)|test\/)/.test(file))

/** The hooks of other services that a source joins. */
const hooksIn = (text: string) =>
  [...text.matchAll(/\.tap\(\s*([A-Z]\w+)\.hooks\.(\w+)/g)].flatMap(([, token = '', hook = '']) =>
    token === 'Host' ? [] : [`${(contracts as unknown as Record<string, { name: string }>)[token]!.name}.${hook}`]
  )
const sortedSet = (names: readonly string[]) => [...new Set(names)].sort()

describe('the architecture', () => {
  it('has a kernel that does not refer to any feature', () => {
    const outside = ({ from }: ImportFound, file: string) => KERNEL_FOLDERS.every(folder => leaves(from, file, folder))
    expect(imports(KERNEL, (item, file) => outside(item, file) || /^@svc\/|koa|oclif/.test(item.from))).to.deep.equal([])
    expect(undeclared('core/kernel')).to.deep.equal([])
  })

  it('has a kernel that writes no console and ends no process', () => {
    const pattern = /\bconsole\b(?!\??:)|\bprocess\s*\.\s*(exit|abort|kill|stdout|stderr|argv)\b/
    expect(places(KERNEL, pattern)).to.deep.equal([])
  })

  it('keeps the inside of the kernel to the packages of the core', () => {
    const others = SHIPPED.filter(file => !file.startsWith('core/'))
    expect(imports(others, ({ from }) => from === '@svc/core/internal')).to.deep.equal([])
  })

  it('has contracts without behaviour', () => {
    const ALLOWED = /^(import\b.*|export \* from.*|export const [A-Z]\w*\s+= (define(Service|Slot|Topic)\b|\{).*|)$/
    const behaviour = filesBelow('core/kernel/contracts', TS).flatMap(file => {
      const code = stripTypeScriptTypes(textOf(file), { mode: 'strip' })
      return statements(blanked(code))
        .filter(statement => !ALLOWED.test(statement))
        .map(statement => `${file} ${statement}`)
    })
    expect(behaviour).to.deep.equal([])
    expect(
      imports(
        filesBelow('core/kernel/contracts', TS),
        ({ from }, file) => leaves(from, file, 'core/kernel/contracts') || !/^(\.|node:|@svc\/core$)/.test(from)
      )
    ).to.deep.equal([])
  })

  for (const folder of PLUGINS)
    describe(folder, () => {
      it('imports the core, libs and its own dependencies only, never another plugin', () => {
        expect(
          imports(
            source(folder),
            ({ from }, file) =>
              leaves(from, file, folder) || isOther(from, file, folder) || (from.startsWith('@svc/testing') && folder !== MANAGER)
          )
        ).to.deep.equal([])
        expect(
          imports(
            filesBelow(folder, TS).filter(file => !file.startsWith(`${PAGE}/`)),
            ({ from }, file) => (leaves(from, file, folder) && !isShared(from, folder)) || isOther(from, file, folder)
          )
        ).to.deep.equal([])
        expect(undeclared(folder)).to.deep.equal([])
      })

      it('imports the host only in index.ts', () => {
        const HOST =
          /^(definePlugin|startHost|planHost|RunningHost|HostOptions|Plan|Plugin|Scope|findConfig|mergeConfig|defineConfig|importFrom|readManifest|\*)$/
        const nouns = source(folder).filter(file => file !== `${folder}/src/index.ts` && folder !== MANAGER)
        expect(imports(nouns, ({ from, names }) => from === '@svc/core' && names.some(name => HOST.test(name)))).to.deep.equal([])
      })

      it('has a manifest, a README, tests, and an index of at most 60 lines', () => {
        expect(packageOf(folder).svc).to.deep.include({ api: 1 })
        const files = ['README.md', isData(folder) ? 'vertical.yaml' : 'src/index.ts']
        expect(files.filter(file => !existsSync(join(ROOT, folder, file)))).to.deep.equal([])
        if (isData(folder)) return
        expect(filesBelow(folder, /\/test\/.*\.spec\.ts$/)).to.not.deep.equal([])
        expect(textOf(`${folder}/src/index.ts`).trimEnd().split('\n').length).to.be.at.most(60)
      })
    })

  it('has plugins whose manifests say which services and slots they use, and which hooks they join', async () => {
    const wrong = await Promise.all(
      PLUGINS.filter(folder => packageOf(folder).svc?.runtime === undefined).map(async folder => {
        const { svc } = packageOf(folder)
        const { default: plugin } = (await import(join(ROOT, folder, 'src/index.ts'))) as { default: Plugin }
        const uses = Object.values({ ...plugin.requires, ...plugin.optional }).map(token => token.name)
        const joins = source(folder).flatMap(file => hooksIn(textOf(file)))
        const { services = [], hooks = [] } = svc?.permissions ?? {}
        const said = { services: [...services], hooks: [...hooks] }
        const found = { services: sortedSet(uses.filter(name => name !== 'host')), hooks: sortedSet(joins) }
        return isDeepStrictEqual(said, found) ? [] : [{ folder, said, found }]
      })
    )
    expect(wrong.flat()).to.deep.equal([])
  })

  it('has packages that declare what they import', () => {
    expect([...LIBS, 'cli', 'client'].flatMap(undeclared)).to.deep.equal([])
  })

  it('builds a package after those that it depends on', () => {
    const folders = [...packagesBelow('core'), ...LIBS, ...PLUGINS, 'cli'].filter(folder =>
      existsSync(join(ROOT, folder, 'tsconfig.build.json'))
    )
    const folderOf = new Map(folders.map(folder => [packageOf(folder).name, folder]))
    const missing = folders.flatMap(folder => {
      const built = referencesOf(`${folder}/tsconfig.build.json`)
      return [...declared(folder)]
        .filter(name => folderOf.has(name) && !built.some(file => file.startsWith(`${folderOf.get(name)}/`)))
        .map(name => `${folder}/tsconfig.build.json does not refer to ${name}`)
    })
    expect(missing).to.deep.equal([])
  })

  it('has koa and the table from code to status in plugins/api/http alone', () => {
    const others = SHIPPED.filter(file => !file.startsWith('plugins/api/http/'))
    expect(imports(others, ({ from }) => /^(@koa\/|koa($|\/|-))/.test(from))).to.deep.equal([])
    expect(places(others, STATUS_TABLE, 'strings')).to.deep.equal([])
  })

  it('has a client that imports no package of svc or of Node.js', () => {
    expect(imports(source('client'), ({ from }) => /^(@svc\/|node:)/.test(from))).to.deep.equal([])
  })

  it('has argv and the exit of the process in cli alone', () => {
    const others = SHIPPED.filter(file => !file.startsWith('cli/') && file !== CHILD)
    expect(places(others, /\bprocess\s*\.\s*(argv|exit)\b|\bconsole\s*\./)).to.deep.equal([])
    expect(imports(others, ({ from }) => from.startsWith('@oclif/'))).to.deep.equal([])
  })

  it('has functions of at most 60 lines', () => {
    const functions = SHIPPED.flatMap(functionsOf)
    expect(functions.filter(item => item.length > 60).map(item => `${item.file}:${item.line} ${item.length}`)).to.deep.equal([])
    expect(median(functions.map(item => item.length))).to.be.at.most(8)
  })

  it('names no path of a machine and no registry', () => {
    const files = filesBelow('.', /\.(m?[jt]s|json|md|ya?ml|sh|html)$|(^|\/)\.[a-z]+rc$|\.ci\//)
    const MACHINE = /(^|[^\w.])\/(work|root|home\/\w+|Users\/\w+)\/|"resolved":\s*"https?:|\bregistry\.[a-z0-9.-]+\.[a-z]{2,}/
    expect(
      files.flatMap(file =>
        textOf(file)
          .split('\n')
          .flatMap((line, at) => (MACHINE.test(line) ? [`${file}:${at + 1}`] : []))
      )
    ).to.deep.equal([])
  })
})

describe('the scanner of the architecture test', () => {
  it('sees the imports, words and tables where they are allowed', () => {
    expect(imports(source('plugins/api/http'), ({ from }) => from === 'koa')).to.not.deep.equal([])
    expect(places(source('plugins/api/http'), STATUS_TABLE, 'strings')).to.not.deep.equal([])
    expect(places(source('cli'), /\bprocess\s*\.\s*argv\b/)).to.not.deep.equal([])
    expect(importsOf('test/architecture.spec.ts').map(item => item.from)).to.include.members([
      'node:fs',
      'chai',
      './support/source.ts',
    ])
    expect(importsOf('core/kernel/config/load-file.ts').map(item => item.from)).to.include.members(['cosmiconfig', './lines.ts'])
    const names = importsOf('core/kernel/src/plugin.ts').find(item => item.from === './token.ts')?.names
    expect(names).to.include.members(['AnyService', 'SlotView'])
  })

  it('measures functions as a person counts them', () => {
    const found = functionsOf('test/support/source.ts')
    const lengthAt = (start: string) =>
      found.find(item => textOf(item.file).split('\n')[item.line - 1]?.startsWith(start))?.length
    expect(lengthAt('function nameBefore')).to.equal(5)
    expect(lengthAt('function regexLength')).to.equal(10)
    expect(lengthAt('export const median')).to.equal(1)
    expect(lengthAt('export function blanked')).to.equal(11)
  })
})

/** The statements of a file at its outermost level, each as one line. */
function statements(code: string): string[] {
  const found: string[] = []
  let depth = 0
  for (const line of code.split('\n')) {
    if (depth === 0 && !/^\s*[)\]}]/.test(line)) found.push(line.trim())
    for (const char of line) depth += '([{'.includes(char) ? 1 : ')]}'.includes(char) ? -1 : 0
  }
  return found.filter(Boolean)
}
