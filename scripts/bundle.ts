// Writes the JavaScript of packages: node scripts/bundle.ts core plugins/http (npm run build and prepack do it, after `tsc -b` has written the types)
// Each package becomes a few files: reading one by one what lies in the source would take a sixth of a start.
import { readFileSync, rmSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { build } from 'rolldown'

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly 'svc-source'?: string }>>
}

/** What a process or a thread is started with, or a command line reads, besides what the package exports. */
const STARTED: Readonly<Record<string, readonly string[]>> = {
  '@svc/cli': ['src/main.ts', 'src/work.ts', 'src/commands.ts'],
  '@svc/core': ['isolation/isolate-child.ts'],
  '@svc/plugin-store-sqlite': ['src/writer.ts', 'src/inspector.ts'],
  '@svc/plugin-tools-text': ['src/work.ts'],
  '@svc/plugin-tools-web': ['src/work.ts'],
}

for (const folder of process.argv.slice(2)) await bundle(folder)

async function bundle(folder: string) {
  const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const exported = Object.values(exports).flatMap(one => (typeof one === 'object' && one['svc-source']) || [])
  const isCore = name === '@svc/core'
  const base = join(folder, isCore ? '.' : 'src')
  const files = [...exported, ...(STARTED[name] ?? [])].map(file => join(folder, file))
  const dir = join(folder, 'dist')
  for await (const old of glob('**/*.js', { cwd: dir })) rmSync(join(dir, old))
  await build({
    input: Object.fromEntries(files.map(file => [relative(base, file).replace(/\.ts$/, ''), file])),
    external: id => !id.startsWith('.') && !id.startsWith('/'),
    platform: 'node',
    output: {
      dir,
      format: 'esm',
      entryFileNames: '[name].js',
      // as deep as the others, so that what is found by `import.meta.url` is found from each
      chunkFileNames: `${isCore ? 'src/' : ''}part-[hash].js`,
    },
    logLevel: 'warn',
  })
}
