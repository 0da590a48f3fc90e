import { existsSync, realpathSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Config } from '@svc/core'
import { shownPath } from '@svc/core'
import { type Imports } from '@svc/cli/program'
import { copyOne } from './copy.ts'
import { configScattered, configTwice } from './errors.ts'

/** What a file is called where svc looks for it. */
const KNOWN = /^svc\.config\.(ts|mts|js|json|yaml)$/
const MODULE = /\.[mc]?[jt]s$/

/** Copies the file of configuration and what it imports by relative paths; an empty one where there is none. */
export async function copyConfig(config: Config, imports: Imports, to: string): Promise<void> {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const [file, ...others] = files
  if (others.length > 0) throw configTwice(files.map(one => shownPath(one)))
  if (file === undefined) return writeFile(join(to, 'svc.config.json'), '{}\n')
  const name = basename(file)
  const known = KNOWN.test(name)
    ? name
    : name
        .replace(/^.*(?=\.[^.]+$)/, 'svc.config')
        .replace(/\.mjs$/, '.js')
        .replace(/\.yml$/, '.yaml')
  await copyOne(file, join(to, known))
  if (!MODULE.test(name)) return
  const base = dirname(realpathSync(file))
  for (const other of new Set(
    imports
      .withImported([file])
      .filter(existsSync)
      .map(one => realpathSync(one))
  )) {
    const path = relative(base, other)
    if (path.startsWith('..')) throw configScattered(shownPath(file), shownPath(other))
    if (other === realpathSync(file)) continue
    await mkdir(dirname(join(to, path)), { recursive: true })
    await copyOne(other, join(to, path))
  }
}
