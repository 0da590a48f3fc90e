import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { FRUGAL } from './support/entry.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

describe('the code', () => {
  it('is formatted, linted, typed and without dead exports (npm run lint)', async () => {
    try {
      const env = { ...process.env, ...FRUGAL }
      await promisify(execFile)('npm', ['run', '--silent', '--ignore-scripts', 'lint'], { cwd: ROOT, env, maxBuffer: 1 << 26 })
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`${stdout}\n${stderr}`.slice(-6000))
    }
  }).timeout(120_000)
})
