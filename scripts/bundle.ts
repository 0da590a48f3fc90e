// Bundles packages to JavaScript: node scripts/bundle.ts core plugins/api/http (npm run build and prepack run it after `tsc -b`
// has written the types)
// Each package becomes a few files: reading the sources one by one would take a sixth of a start.
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'

interface Manifest {
  readonly name: string
  /** Absent for a package without code. */
  readonly exports?: Readonly<Record<string, string | { readonly 'svc-source'?: string }>>
}

/** Modules that are loaded next to the package's exports. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  '@svc/cli': ['src/main.ts', 'src/commands.ts', 'src/command-not-found.ts'],
  '@svc/runtime': ['isolation/isolate-child.ts'],
}
/** Entries of processes and threads: one file each, whatever else contains the same code. */
const STARTED: Readonly<Record<string, readonly string[]>> = {
  '@svc/cli': ['src/work.ts', 'src/trial.ts', 'src/isolated-command.ts'],
  '@svc/runtime': ['processes/handling-watcher.ts'],
  '@svc/plugin-sandbox-quickjs': ['src/thread/worker.ts'],
  '@svc/plugin-store-sqlite': ['src/writer.ts', 'src/inspector.ts', 'src/backup-thread.ts'],
  '@svc/plugin-tools-text': ['src/work.ts'],
  '@svc/plugin-tools-web': ['src/work.ts'],
}

/** Dependencies that become part of the package, so that a bundler of a plugin can follow them. */
const INCLUDED: Readonly<Record<string, string>> = { '@svc/provider-http': 'undici' }

/**
 * Code that several entries share is one file. But contracts import the whole core, which a program that only finds
 * configuration does not need.
 */
const GROUPS = [
  { name: 'contracts', test: /\/kernel\/contracts\//, minShareCount: 2, priority: 1 },
  { name: 'part', minShareCount: 2 },
]
/** Packages whose entries load little of the shared code: a start without MCP servers loads no connection. */
const APART = new Set(['@svc/plugin-mcp-client'])
const groupsOf = (name: string) => (APART.has(name) ? GROUPS.map(group => ({ ...group, entriesAware: true })) : GROUPS)

const folders = process.argv.slice(2)
for (const folder of folders) await bundle(folder)
// The help texts of their commands, from the sources, so that packages that need each other need no build.
const manifests = fileURLToPath(new URL('command-manifests.ts', import.meta.url))
execFileSync(process.execPath, ['--conditions=svc-source', manifests, ...folders], { stdio: 'inherit' })

async function bundle(folder: string) {
  const { name, exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const exported = Object.values(exports).flatMap(item => (typeof item === 'object' && item['svc-source']) || [])
  if (exported.length === 0) return
  // The core and its processes have their own folders beside `src`.
  const base = join(folder, exported.every(file => file.startsWith('./src/')) ? 'src' : '.')
  const depth = base === folder ? dirname(relative(base, join(folder, exported[0]!))) : '.'
  const dir = join(folder, 'dist')
  for await (const old of glob('**/*.js', { cwd: dir })) rmSync(join(dir, old))
  const entries = [[...exported, ...(BESIDE[name] ?? [])], ...(STARTED[name] ?? []).map(file => [file])]
  for (const files of entries)
    await build({
      input: Object.fromEntries(files.map(file => [relative(base, join(folder, file)).replace(/\.ts$/, ''), join(folder, file)])),
      external: id => !id.startsWith('.') && !id.startsWith('/') && id.split('/', 1)[0] !== INCLUDED[name],
      platform: 'node',
      output: {
        dir,
        format: 'esm',
        entryFileNames: '[name].js',
        // As deep as the others, so that `import.meta.url` resolves the same from each.
        chunkFileNames: join(depth, 'part-[hash].js'),
        // Each command of the command line loads only its own code.
        ...(['@svc/cli', '@svc/plugin-manager'].includes(name) ? {} : { codeSplitting: { groups: groupsOf(name) } }),
      },
      logLevel: 'warn',
    })
  const included = INCLUDED[name]
  if (included !== undefined)
    copyFileSync(fileURLToPath(import.meta.resolve(`${included}/LICENSE`)), join(dir, `${included}.LICENSE`))
  if (name === '@svc/cli') writeValidators(join(dir, 'validators.cjs'))
}

/** Compiles the schemas of all shipped packages ahead of time, in a process that reads them from the sources. */
function writeValidators(file: string) {
  execFileSync(process.execPath, ['--conditions=svc-source', join(import.meta.dirname, 'validators.ts'), resolve(file)])
}
