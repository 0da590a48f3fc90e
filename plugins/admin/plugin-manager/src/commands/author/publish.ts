import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { promisify } from 'node:util'
import { messageOf } from '@svc/core'
import { svcHome } from '@svc/core/config'
import { fromCaller } from '@svc/cli/program'
import { notPublished, packFailed } from '../errors.ts'
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
  readonly print: (line: string) => void
}

const MOST_OUTPUT = 1 << 26
const NPM_MS = 120_000

/** Lints, tests, shows the files, asks and publishes. Resolves with the exit code. Throws NOT_PUBLISHED, PACK_FAILED. */
export async function publishPlugin({ folder, dryRun, yes, print }: PublishOptions): Promise<number> {
  const at = fromCaller(folder)
  const findings = await lintPlugin(at)
  print(findingsText(findings))
  const tested = await testPlugin({ folder: at, seed: 1, home: svcHome() }, item =>
    item.state === 'failed' ? print(caseText(item)) : undefined
  )
  print(summaryText(tested))
  if (hasErrors(findings) || hasFailed(tested)) throw notPublished('it has errors, or its kit fails')
  const packed = await pack(at)
  print(packedText(packed))
  if (dryRun) return 0
  if (!(yes || (await isAgreed(`Publish ${packed.name} ${packed.version}? [y/N] `)))) throw notPublished('you did not confirm')
  const [code] = (await once(spawn('npm', ['publish'], { cwd: at, stdio: 'inherit' }), 'exit')) as [number | null]
  return code ?? 1
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
