import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { basename, dirname, isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CODE, importedBy } from '../config/imported.ts'
import { type SvcErrorOptions, type SvcError, svcError } from '../src/errors.ts'

/**
 * Finds the place of a syntax error in the stack (`index.js:3`), relative to the plugin's folder or to the package of the
 * module. The stack contains it except for plain ES modules.
 */
export function placeInStack(error: unknown, folder?: string): string | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const [, file, line] = /^(?:\S*: )?(file:\/\/\S+|\/.+|[A-Za-z]:\\.+):(\d+)$/.exec(error.stack?.split('\n', 1)[0] ?? '') ?? []
  return file === undefined ? undefined : `${below(file.startsWith('file:') ? fileURLToPath(file) : file, folder)}:${line}`
}

/** Finds the place of a syntax error in a plugin's module, relative to its folder. Returns nothing for other errors. */
export const syntaxErrorPlace = async (
  error: unknown,
  entry: () => Promise<string>,
  folder: string
): Promise<string | undefined> =>
  // A failure to find the place must not replace the error itself.
  error instanceof SyntaxError
    ? (placeInStack(error, folder) ??
      (await entry()
        .then(url => placeInSource(url, folder))
        .catch(() => undefined)))
    : undefined

/**
 * Adds the place of a syntax error to the error of an import in a process that cannot start other processes. `module` is the
 * URL of the imported module.
 */
export async function withSyntaxErrorPlace(error: unknown, module: string, folder: string | undefined): Promise<unknown> {
  const { code, message, where, ...parts } = Object(error) as SvcError
  if (code !== 'PLUGIN_IMPORT_FAILED' || where !== undefined || parts.details.cause !== 'SyntaxError') return error
  const place = await placeInSource(module, folder).catch(() => undefined)
  return place === undefined ? error : svcError(code, message, { ...parts, where: place } as SvcErrorOptions)
}

/**
 * Finds the place of a syntax error in plain ES modules, where Node prints it only when it ends a program. Checks the syntax of
 * `entry` and of its relative imports; none of them runs.
 */
async function placeInSource(entry: string, folder: string | undefined): Promise<string | undefined> {
  const files = [realpathSync(fileURLToPath(entry))]
  for (const file of files) {
    const line = await brokenLine(file)
    if (line !== undefined) return `${below(file, folder)}:${line}`
    files.push(...importedBy(file).filter(item => CODE.test(item) && !files.includes(item) && files.length < MOST))
  }
  return undefined
}

/** Each file costs the start of a process. */
const MOST = 30
const LIMIT_MS = 5_000
/** `node --check` parses and runs nothing. */
const brokenLine = (file: string) =>
  new Promise<string | undefined>(done => {
    execFile(process.execPath, ['--check', file], { timeout: LIMIT_MS }, (failed, _out, err) =>
      done(failed ? /^.+:(\d+)$/m.exec(err)?.[1] : undefined)
    )
  })

/** A file outside of the folder is shown by its name only, so that no path of this machine is revealed. */
function below(file: string, folder = packageOf(file)): string {
  const path = relative(existsSync(folder) ? realpathSync(folder) : folder, file)
  return path.startsWith('..') || isAbsolute(path) ? basename(file) : path.split(sep).join('/')
}

const packageOf = (file: string) => dirname(findPackageJSON(pathToFileURL(file)) ?? file)
