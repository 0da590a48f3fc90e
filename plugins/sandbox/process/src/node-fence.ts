import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Shown } from './paths.ts'

const run = promisify(execFile)
/** The first with `--permission` that is stable, of each line. */
const SINCE: Readonly<Record<number, number>> = { 22: 13, 23: 5 }
const ANSWER_MS = 10_000
const SYSTEM = ['/usr', '/etc', '/proc', '/dev', '/tmp']

const versions = new Map<string, Promise<boolean>>()

/** Whether this Node has the permission model; asked once for each file. */
export function hasPermissions(node: string): Promise<boolean> {
  if (node === process.execPath) return Promise.resolve(isNewEnough(process.version))
  const known = versions.get(node) ?? askVersion(node)
  versions.set(node, known)
  return known
}

const askVersion = async (node: string): Promise<boolean> => {
  const { stdout } = await run(node, ['--version'], { timeout: ANSWER_MS, env: {} }).catch(() => ({ stdout: '' }))
  return isNewEnough(stdout)
}

function isNewEnough(version: string): boolean {
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version) ?? []).map(Number)
  return major >= 24 || minor >= (SINCE[major] ?? Number.POSITIVE_INFINITY)
}

/** The flags of a second fence within the sandbox. It is none alone: no network, and node:sqlite writes anywhere, so that is switched off. */
export const fence = ({ read, write }: Shown): string[] => [
  '--permission',
  '--no-experimental-sqlite',
  ...[...SYSTEM, ...read, ...write].map(path => `--allow-fs-read=${path}`),
  ...['/tmp', ...write].map(path => `--allow-fs-write=${path}`),
]

/** The same for `NODE_OPTIONS`, where the program starts Node itself. */
export const asOptions = (flags: readonly string[], own = ''): string =>
  [...flags.map(flag => (/[\s"\\]/.test(flag) ? `"${flag.replace(/["\\]/g, '\\$&')}"` : flag)), own].join(' ').trim()
