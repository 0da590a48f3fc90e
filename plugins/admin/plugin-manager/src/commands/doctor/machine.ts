import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, messageOf } from '@svc/core'
import { fail, type Finding, ok, room, warn } from './finding.ts'

const NEEDED = 24

/** The runtime. */
export function nodeFinding(version: string = process.versions.node): Finding {
  if (Number.parseInt(version, 10) >= NEEDED) return ok('node', version)
  return fail(
    'node',
    `${version} is too old: svc needs ${NEEDED}`,
    `install Node ${NEEDED}, or start svc with npm: it brings its own`
  )
}

/** The svc home: there or makeable, its owner's alone, writable, with room. */
export async function homeFindings(home: string): Promise<Finding[]> {
  try {
    const found = await stat(home)
    if (!found.isDirectory()) return [fail('home', `${home} is no folder`, 'take it away, or set SVC_HOME to a folder')]
    await access(home, constants.W_OK | constants.X_OK)
    const left = room('home', await freeBytes(home))
    return [
      ok('home', `${home}, ${left.text}`),
      ...(left.finding ? [left.finding] : []),
      ...(found.mode & 0o077 ? [warn('home', `others may look into it (mode ${modeOf(found.mode)})`, `chmod 700 ${home}`)] : []),
      ...(found.uid === process.getuid?.()
        ? []
        : [warn('home', `it belongs to user ${found.uid}`, `run svc as that user, or chown -R to the one who runs it`)]),
    ]
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [await missingHome(home)]
    return [
      fail('home', `${home} cannot be used: ${messageOf(error)}`, 'give who runs svc the right to write there, or set SVC_HOME'),
    ]
  }
}

const modeOf = (mode: number) => (mode & 0o777).toString(8).padStart(4, '0')

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** A first start makes it, where it may. */
async function missingHome(home: string): Promise<Finding> {
  try {
    await access(await existing(home), constants.W_OK)
    return ok('home', `${home} is not there yet; the first start makes it`)
  } catch (error) {
    return fail('home', `${home} cannot be made: ${messageOf(error)}`, 'set SVC_HOME to a folder where it can')
  }
}

async function existing(path: string): Promise<string> {
  const above = dirname(path)
  return above === path || (await stat(above).catch(() => undefined)) ? above : existing(above)
}
