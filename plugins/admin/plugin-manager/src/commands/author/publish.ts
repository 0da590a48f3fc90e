import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { promisify } from 'node:util'
import { messageOf, readManifest } from '@svc/core'
import { svcHome } from '@svc/core/config'
import { fromCaller } from '@svc/cli/program'
import { onlyInProcess } from '@svc/testing'
import { notPublished, packFailed } from '../errors.ts'
import { type AuthorIsolation, chooseIsolation } from './isolation-here.ts'
import { findingsText, hasErrors } from './plugin-folder.ts'
import { lintPlugin } from './lint.ts'
import { caseText, hasFailed, summaryText, testPlugin } from './test-plugin.ts'

/** The package that npm would send. */
interface Packed {
  readonly name: string
  readonly version: string
  readonly size: number
  readonly files: readonly { readonly path: string; readonly size: number }[]
}

interface PublishOptions {
  readonly folder: string
  readonly dryRun: boolean
  readonly yes: boolean
  /** Tests it in the process of svc, and records that in the package. */
  readonly noIsolation: boolean
  readonly print: (line: string) => void
}

const MOST_OUTPUT = 1 << 26
const NPM_MS = 120_000

/** Lints, tests, shows the files, asks and publishes. Resolves with the exit code. Throws NOT_PUBLISHED, PACK_FAILED. */
export async function publishPlugin({ folder, dryRun, yes, noIsolation, print }: PublishOptions): Promise<number> {
  const at = fromCaller(folder)
  const findings = await lintPlugin(at)
  print(findingsText(findings))
  const isolation = noIsolation ? 'in-process' : await isolationOf(at)
  const tested = await testPlugin({ folder: at, seed: 1, home: svcHome(), isolation }, item =>
    item.state === 'failed' ? print(caseText(item)) : undefined
  )
  print(summaryText(tested))
  if (hasErrors(findings) || hasFailed(tested)) throw notPublished('it has errors, or its kit fails')
  if (!dryRun) await recordIsolation(at, noIsolation)
  const packed = await pack(at)
  print(packedText(packed))
  if (dryRun) return 0
  if (!(yes || (await isAgreed(`Publish ${packed.name} ${packed.version}? [y/N] `))))
    throw notPublished('you did not confirm', 'Answer y, or pass --yes')
  const [code] = (await once(spawn('npm', ['publish'], { cwd: at, stdio: 'inherit' }), 'exit')) as [number | null]
  return code ?? 1
}

/** Installed plugins run in processes of their own, so that is how the kit must have passed. Throws NOT_PUBLISHED. */
async function isolationOf(folder: string): Promise<AuthorIsolation> {
  const { isolation, reason } = await chooseIsolation(folder, undefined)
  const isUnfit = onlyInProcess((await readManifest(join(folder, 'package.json'))).manifest) !== undefined
  if (isolation === 'process' || isUnfit) return isolation
  throw notPublished(
    `its kit cannot run in a process of its own here: ${reason}`,
    'Publish from a machine with bubblewrap, or pass --no-isolation, which the package records'
  )
}

/** Writes `"tested": "in-process"` into the manifest, or removes it. People see it before they install the plugin. */
async function recordIsolation(folder: string, noIsolation: boolean): Promise<void> {
  const file = join(folder, 'package.json')
  const text = await readFile(file, 'utf8')
  const { svc, ...pkg } = JSON.parse(text) as { readonly svc: Readonly<Record<string, unknown>> }
  const { tested, ...manifest } = svc
  if ((tested !== undefined) === noIsolation) return
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  '
  const written = { ...pkg, svc: noIsolation ? { ...manifest, tested: 'in-process' } : manifest }
  await writeFile(file, `${JSON.stringify(written, null, indent)}\n`)
}

async function pack(cwd: string): Promise<Packed> {
  try {
    const options = { cwd, maxBuffer: MOST_OUTPUT, timeout: NPM_MS }
    const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], options)
    const answer = JSON.parse(stdout) as readonly Packed[] | Readonly<Record<string, Packed>>
    return Object.values(answer)[0]!
  } catch (error) {
    throw packFailed(messageOf(error).split('\n', 3).join(' '))
  }
}

const packedText = ({ name, version, size, files }: Packed) =>
  [`${name} ${version}: ${files.length} files, ${size} bytes packed`, ...files.map(file => `  ${file.path}`)].join('\n')

/** Without a terminal, the answer is no. */
async function isAgreed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  using lines = createInterface({ input: process.stdin, output: process.stderr })
  return /^y(es)?$/i.test(await lines.question(question))
}
