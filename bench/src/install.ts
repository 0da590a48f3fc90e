import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('..', import.meta.url))
const stamp = `${folder}/node_modules/.svc-ready`

/** Installs the peers when they do not match the lock. */
export function installPeers(say: (text: string) => void): void {
  const want = createHash('sha256')
    .update(readFileSync(`${folder}/package-lock.json`))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === want) return
  say('bench: installing the peers that the figures are compared with …')
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--loglevel=error'], { cwd: folder, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the peers could not be installed; npm says above why')
  writeFileSync(stamp, want)
}
