import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Extensions of configuration that is code. */
export const CODE = /\.[cm]?[jt]s$/

/** `from './a.ts'`, `import './a.ts'`, `import('./a.ts')`, `require('./a')`. */
const IMPORT = /\b(?:from|import|require)\s*\(?\s*["'`](\.{1,2}\/[^"'`\n]+)["'`]/g
/** What `require` may leave out. */
const ENDINGS = ['', '.js', '.cjs', '.json', '/index.js']

/** The files that a module names in relative imports. They are read, nothing runs; names that are computed at run time are not found. */
export function importedBy(file: string): string[] {
  const names = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, name = '']) => resolve(dirname(file), decoded(name)))
  return names.flatMap(name => ENDINGS.map(ending => name + ending).find(isFile) ?? [])
}

/** A module and all that it imports by relative names, one through the other, by their real paths. */
export function withImported(file: string): string[] {
  const files = new Set([realpathSync(file)])
  // a set that grows is walked to its end
  for (const one of files) if (CODE.test(one)) for (const next of importedBy(one)) files.add(realpathSync(next))
  return [...files]
}

const isFile = (path: string) => existsSync(path) && statSync(path).isFile()

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replace(/[?#].*$/, ''))
  } catch {
    return name
  }
}
