import { constants } from 'node:fs'
import { access, open, realpath, stat } from 'node:fs/promises'
import { basename, delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { packagesAround } from '@svc/core'
import { noCommand } from './errors.ts'
import { isThere, isWithin } from './paths.ts'

/** A program, and the files that it needs to run. */
export interface Program {
  /** The path to start it by. It can be a link: some programs look at their own name. */
  readonly path: string
  /** The same with its links resolved. */
  readonly real: string
  /** The real file of its interpreter, if its first line names that by a path. */
  readonly interpreter?: string
  /** Its own files and folders, with links resolved. */
  readonly read: readonly string[]
  /** Links to create: from, to. */
  readonly links: readonly (readonly [at: string, to: string])[]
  /** Folders for PATH: of the program and its interpreter. */
  readonly folders: readonly string[]
  /** The real file of Node, for a Node program. */
  readonly node?: string
  /** True if the program is Node itself. */
  readonly isNode: boolean
}

/** Folders that every sandbox sees. */
export const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store']
/** Files that mark a folder with `bin` as an installation, which the sandbox shows with its libraries. Any other folder with `bin` can be a person's home. */
const INSTALLED = ['lib/node_modules', 'pyvenv.cfg', 'conda-meta']
const PARTS = ['bin', 'lib', 'lib64', 'libexec', 'pyvenv.cfg']

/** Finds a program by name or path, and its files. Throws SANDBOX_COMMAND. */
export async function findProgram(command: string, where: { readonly path: string; readonly cwd: string }): Promise<Program> {
  const at = await lookUp(command, where)
  if (at === undefined) throw noCommand(command)
  const own = await piece(at)
  const name = await interpreterOf(own.real)
  const found = name === undefined ? undefined : await lookUp(name, where)
  const interpreter = found === undefined ? undefined : await piece(found)
  const all = interpreter ? [own, interpreter] : [own]
  const node = all.find(item => /^node(js)?$/.test(basename(item.real)))
  return {
    path: own.at,
    real: own.real,
    ...(interpreter && name!.includes(sep) ? { interpreter: interpreter.real } : {}),
    read: all.flatMap(item => item.read),
    links: all.flatMap(item => item.links),
    folders: all.map(item => dirname(item.at)).filter(folder => !isSystem(folder)),
    isNode: node === own,
    ...(node === undefined ? {} : { node: node.real }),
  }
}

/** Whether every sandbox sees a path. */
export const isSystem = (path: string): boolean => SYSTEM_FOLDERS.some(folder => isWithin(path, folder))

interface Piece {
  readonly at: string
  readonly real: string
  readonly read: readonly string[]
  readonly links: Program['links']
}

async function piece(found: string): Promise<Piece> {
  const at = join(await realpath(dirname(found)), basename(found))
  const real = await realpath(found)
  const read = [...(await partsOf(at)), ...(await partsOf(real))].filter(path => !isSystem(path))
  const isSeen = isSystem(at) || read.some(path => isWithin(at, path))
  return { at, real, read: [...read, ...(isSystem(real) ? [] : [real])], links: isSeen || at === real ? [] : [[at, real]] }
}

/** Returns the installation of a file. A compiled program of a Node package needs no other files. */
async function partsOf(file: string): Promise<string[]> {
  if (isSystem(file)) return []
  const packages = packagesAround(file)
  if (packages !== undefined) return (await firstBytes(file)).startsWith('\x7fELF') ? [] : [packages]
  const prefix = dirname(dirname(file))
  const marks = await Promise.all(INSTALLED.map(item => isThere(join(prefix, item))))
  if (basename(dirname(file)) !== 'bin' || !marks.includes(true)) return []
  const parts = PARTS.map(item => join(prefix, item))
  const there = await Promise.all(parts.map(isThere))
  return parts.filter((_, index) => there[index])
}

async function lookUp(
  command: string,
  { path, cwd }: { readonly path: string; readonly cwd: string }
): Promise<string | undefined> {
  if (command.includes(sep)) return (await isProgram(resolve(cwd, command))) ? resolve(cwd, command) : undefined
  for (const folder of path.split(delimiter))
    if (isAbsolute(folder) && (await isProgram(join(folder, command)))) return join(folder, command)
  // a service can be started by the full path of Node, which is then not in PATH
  return command === 'node' ? process.execPath : undefined
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}

const SHEBANG_BYTES = 256

async function firstBytes(file: string): Promise<string> {
  await using handle = await open(file).catch(() => undefined)
  const read = await handle?.read(Buffer.alloc(SHEBANG_BYTES), 0, SHEBANG_BYTES, 0)
  return read?.buffer.toString('latin1', 0, read.bytesRead) ?? ''
}

/** `#!/usr/bin/env node`, `#!/usr/bin/env -S node --flag`, `#!/opt/node/bin/node`. */
async function interpreterOf(file: string): Promise<string | undefined> {
  const [, line] = /^#!\s*([^\n]+)/.exec(await firstBytes(file)) ?? []
  const words = line?.trim().split(/\s+/) ?? []
  return basename(words[0] ?? '') === 'env' ? words.slice(1).find(word => !word.startsWith('-') && !word.includes('=')) : words[0]
}

/** Returns the files of a Node program: the `node_modules` or the package around its script, or the script alone. */
export async function packageOf(script: string, isTooMuch: (folder: string) => boolean): Promise<string> {
  const packages = packagesAround(script)
  if (packages !== undefined) return packages
  for (let folder = dirname(script); folder !== dirname(folder); folder = dirname(folder))
    if (await isThere(join(folder, 'package.json'))) return isTooMuch(folder) ? script : folder
  return script
}

/** Returns the script that Node runs: the first argument that is a file, as named and with its links resolved. */
export async function scriptOf(
  args: readonly string[],
  cwd: string
): Promise<{ readonly named: string; readonly real: string } | undefined> {
  for (const arg of args) {
    if (/^(-e|--eval|-p|--print|-)$/.test(arg)) return undefined
    if (arg.startsWith('-')) continue
    const named = resolve(cwd, arg)
    const real = await realpath(named).catch(() => undefined)
    if (real !== undefined) return { named, real }
  }
  return undefined
}
