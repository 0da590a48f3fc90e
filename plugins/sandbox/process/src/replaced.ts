import { type FSWatcher, lstatSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/**
 * Calls `ended` once, when another file or folder takes the place of one of these paths. A mount ends in every sandbox when its mount point is renamed or
 * removed on this machine, as an editor and `git config` do it: what it protected could then be written.
 */
export function watchReplaced(paths: readonly string[], ended: (path: string) => void): Disposable {
  const known = new Map(paths.map(path => [path, identityOf(path)]))
  const watchers: FSWatcher[] = []
  const close = () => watchers.splice(0).forEach(one => one.close())
  const look = (path: string) => {
    if (watchers.length === 0 || identityOf(path) === known.get(path)) return
    close()
    ended(path)
  }
  for (const [folder, inside] of Map.groupBy(paths, dirname)) {
    const names = new Map(inside.map(path => [basename(path), path]))
    const watcher = watch(folder, { persistent: false }, (_, name) => {
      const path = names.get(name ?? '')
      if (path !== undefined) look(path)
    })
    // the folder itself is gone: so is what lay in it
    watchers.push(watcher.on('error', () => inside.forEach(look)))
  }
  // what was replaced before the watch began
  paths.forEach(look)
  return { [Symbol.dispose]: close }
}

function identityOf(path: string): string {
  try {
    const { dev, ino } = lstatSync(path, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return ''
  }
}
