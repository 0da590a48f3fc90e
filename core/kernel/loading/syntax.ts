import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { basename, dirname, isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CODE, importedBy } from '../config/imported.ts'
import { type ErrorParts, type SvcError, svcError } from '../src/svc-error.ts'

/** `index.js:3`, below the plugin's folder, or that of the module's package: where a module breaks the grammar, as far as the error's stack begins with it, which it does but for plain ES modules. */
export function placeInStack(error: unknown, folder?: string): string | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const [, file, line] = /^(?:\S*: )?(file:\/\/\S+|\/.+|[A-Za-z]:\\.+):(\d+)$/.exec(error.stack?.split('\n', 1)[0] ?? '') ?? []
  return file === undefined ? undefined : `${below(file.startsWith('file:') ? fileURLToPath(file) : file, folder)}:${line}`
}

/** Where a module of a plugin breaks the grammar, below its folder; nothing of other errors. */
export const syntaxErrorPlace = async (
  error: unknown,
  entry: () => Promise<string>,
  folder: string
): Promise<string | undefined> =>
  // what cannot be told must not take the place of the error itself
  error instanceof SyntaxError
    ? (placeInStack(error, folder) ??
      (await entry()
        .then(url => placeInSource(url, folder))
        .catch(() => undefined)))
    : undefined

/** The error of an import in a process that may start no other: the place is looked for here, `module` being the URL of what was imported. */
export async function withSyntaxErrorPlace(error: unknown, module: string, folder: string | undefined): Promise<unknown> {
  const { code, message, where, ...parts } = Object(error) as SvcError
  if (code !== 'PLUGIN_IMPORT_FAILED' || where !== undefined || parts.details.cause !== 'SyntaxError') return error
  const place = await placeInSource(module, folder).catch(() => undefined)
  return place === undefined ? error : svcError(code, message, { ...parts, where: place } as ErrorParts)
}

/** The same of a plain ES module, of which Node tells the place only where it ends a program: whatever `entry` imports of its own is held to the grammar, none of it runs. */
async function placeInSource(entry: string, folder: string | undefined): Promise<string | undefined> {
  const files = [realpathSync(fileURLToPath(entry))]
  for (const file of files) {
    const line = await brokenLine(file)
    if (line !== undefined) return `${below(file, folder)}:${line}`
    files.push(...importedBy(file).filter(one => CODE.test(one) && !files.includes(one) && files.length < MOST))
  }
  return undefined
}

/** Each costs the start of a process. */
const MOST = 30
const LIMIT_MS = 5_000
/** `node --check` parses and runs nothing. */
const brokenLine = (file: string) =>
  new Promise<string | undefined>(done => {
    execFile(process.execPath, ['--check', file], { timeout: LIMIT_MS }, (failed, _out, err) =>
      done(failed ? /^.+:(\d+)$/m.exec(err)?.[1] : undefined)
    )
  })

/** What lies elsewhere is told by its name: no path of this machine. */
function below(file: string, folder = packageOf(file)): string {
  const path = relative(existsSync(folder) ? realpathSync(folder) : folder, file)
  return path.startsWith('..') || isAbsolute(path) ? basename(file) : path.split(sep).join('/')
}

const packageOf = (file: string) => dirname(findPackageJSON(pathToFileURL(file)) ?? file)
