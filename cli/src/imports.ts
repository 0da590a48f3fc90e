import { existsSync, realpathSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What modules bring in by relative imports, from now until it is disposed of. */
export interface Imports extends Disposable {
  /** These files and what they import, one through the other; nothing of `node_modules`. */
  withImported(files: readonly string[]): string[]
}

/** Another package is none of the project's own files; `#name` is one within the same package. */
const OWN = /^(\.{0,2}\/|\.{1,2}$|#|file:)/
const INSTALLED = `${sep}node_modules${sep}`

/** Notes each relative import, also by `require` and `import()`. */
export function noteImports(): Imports {
  const imported = new Map<string, Set<string>>()
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context)
      const [from, to] = OWN.test(specifier) ? [fileOf(context.parentURL), fileOf(found.url)] : []
      if (from !== undefined && to !== undefined && !to.includes(INSTALLED))
        imported.set(from, (imported.get(from) ?? new Set<string>()).add(to))
      return found
    },
  })
  return {
    withImported(files) {
      // modules are known by where they really are
      const all = new Set([...files, ...files.filter(file => existsSync(file)).map(file => realpathSync(file))])
      // what is added while it is gone through is gone through, too
      for (const file of all) for (const next of imported.get(file) ?? []) all.add(next)
      return [...all]
    },
    [Symbol.dispose]: () => hooks.deregister(),
  }
}

const fileOf = (url: string | undefined) => (url?.startsWith('file:') ? fileURLToPath(url) : undefined)
