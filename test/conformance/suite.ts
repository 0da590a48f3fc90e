import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const require = createRequire(import.meta.url)
const SUITE = join(dirname(require.resolve('@modelcontextprotocol/conformance/package.json')), 'dist/index.js')
export const run = promisify(execFile)

/** The revisions of the protocol that are asked for. */
export type Revision = '2026-07-28' | '2025-11-25'

/** What became of each scenario: counted ones, and others. */
export async function conform(url: string, revision: Revision) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-conformance-'))
  const args = [SUITE, 'server', '--url', `${url}/mcp`, '--requirements', revision]
  // it ends with 1 where a scenario fails, counted or not
  const { stdout } = await run(process.execPath, args, { cwd: folder, maxBuffer: 1e8 }).catch(
    error => error as { stdout: string }
  )
  await rm(folder, { recursive: true, force: true })
  const lines = stdout.slice(stdout.indexOf('=== SUMMARY ===')).split('\n')
  const uncounted = new Set(lines.flatMap(line => /^ {2}[✓✗] (\S+) \(/.exec(line)?.[1] ?? []))
  const results = lines.flatMap(line => {
    const [, mark, name = ''] = /^([✓✗]) (\S+):/.exec(line) ?? []
    return mark === undefined ? [] : [{ name, passed: mark === '✓' }]
  })
  const passedOf = (all: typeof results) => all.filter(item => item.passed).map(item => item.name)
  const failedOf = (all: typeof results) => all.filter(item => !item.passed).map(item => item.name)
  const counted = results.filter(result => !uncounted.has(result.name))
  return {
    passed: passedOf(counted),
    failed: failedOf(counted),
    more: passedOf(results.filter(result => uncounted.has(result.name))),
  }
}
