import { constants } from 'node:fs'
import { chmod, copyFile, lstat, readFile, realpath, stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { codeOf, isTree, messageOf, shownPath } from '@svc/core'
import { replaceFile } from '@svc/runtime/home-files'
import { fileChanged, fileInvalid, fileUnreadable, settingsConflict } from './errors.ts'
import { FORMATS, type Format, type Setting } from './formats.ts'

/** A file of a client, and the settings that it needs. They depend on what the file has: `tree`, an object. */
export interface ConfigFile {
  readonly path: string
  readonly format: Format
  settings(tree: Tree): readonly Setting[]
}

export type Tree = Readonly<Record<string, unknown>>

/** A file as it is to be. */
export interface PlannedFile {
  /** The file that the client reads. */
  readonly path: string
  /** The file behind symbolic links. */
  readonly target: string
  /** Absent if there is no file. */
  readonly before?: string
  readonly after: string
}

/** The text of a file with only these settings. */
export async function fragment(file: ConfigFile): Promise<string> {
  return (await FORMATS[file.format]()).edit('', file.settings({}))
}

/** Reads the file and adds the settings. Throws CLIENT_FILE_INVALID, CLIENT_SETTINGS_CONFLICT. */
export async function planFile(file: ConfigFile, client: string): Promise<PlannedFile> {
  const where = shownPath(file.path)
  const target = await targetOf(file.path)
  const before = await textOf(target, where)
  const format = await FORMATS[file.format]()
  const byHand = `Correct the file, or add by hand what \`svc connect ${client}\` shows`
  const read = (text: string): Tree => {
    let tree: unknown
    try {
      tree = format.parse(text)
    } catch (error) {
      throw fileInvalid(where, `the file is not valid ${file.format.toUpperCase()}: ${firstLine(messageOf(error))}`, byHand)
    }
    if (!isTree(tree)) throw fileInvalid(where, 'the file is not an object with settings', byHand)
    return tree
  }
  const tree = read(before ?? '')
  const settings = file.settings(tree)
  const conflicts = settings.filter(setting => isConflict(tree, setting))
  if (conflicts.length > 0) throw settingsConflict(where, client, conflicts.map(nameOf))
  const open = settings.filter(({ keys, value, isDefault }) => {
    const old = valueAt(tree, keys)
    return isDefault ? old === undefined : !isDeepStrictEqual(plain(old), plain(value))
  })
  // a default alone is no reason to write
  if (open.every(({ isDefault }) => isDefault)) return { path: file.path, target, after: before ?? '', ...defined(before) }
  const after = format.edit(before ?? '', open)
  const expected = open.reduce<unknown>((all, { keys, value }) => withValue(all, keys, value), tree)
  if (!isDeepStrictEqual(plain(read(after)), plain(expected)))
    throw fileInvalid(
      where,
      'the settings cannot be added without changing others',
      `Add by hand what \`svc connect ${client}\` shows`
    )
  return { path: file.path, target, after, ...defined(before) }
}

const defined = (before: string | undefined) => (before === undefined ? {} : { before })
const firstLine = (text: string) => text.split('\n', 1)[0]!

/** Writes a planned file, unless another program has changed it. Returns the path of the copy of the old file. */
export async function writeFile({ path, target, before, after }: PlannedFile): Promise<string | undefined> {
  const where = shownPath(path)
  if ((await textOf(target, where)) !== before) throw fileChanged(where)
  if (before === undefined) {
    await replaceFile(target, after)
    return undefined
  }
  const backup = `${target}.${new Date().toISOString().replaceAll(/[-:.]/g, '')}.bak`
  await copyFile(target, backup, constants.COPYFILE_EXCL)
  const { mode } = await stat(target)
  await replaceFile(target, after)
  await chmod(target, mode & 0o777)
  return backup
}

/** Follows symbolic links, which people who keep their settings elsewhere use: a rename would replace the link. */
async function targetOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const isLink = await lstat(path).then(
      found => found.isSymbolicLink(),
      () => false
    )
    if (codeOf(error) !== 'ENOENT' || isLink) throw fileUnreadable(shownPath(path), error)
    return path
  }
}

const LARGEST = 1024 * 1024

async function textOf(path: string, where: string): Promise<string | undefined> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw fileInvalid(where, 'it is not a file')
    if (found.size > LARGEST) throw fileInvalid(where, `the file has more than ${LARGEST} bytes`)
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(await readFile(path))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw codeOf(error) === 'CLIENT_FILE_INVALID' ? error : fileUnreadable(where, error)
  }
}

function isConflict(tree: Tree, { keys, value, isOurs, isDefault }: Setting): boolean {
  for (let length = 1; length < keys.length; length++) {
    const parent = valueAt(tree, keys.slice(0, length))
    if (parent !== undefined && !(typeof keys[length] === 'number' ? Array.isArray(parent) : isTree(parent))) return true
  }
  const old = valueAt(tree, keys)
  return old !== undefined && !isOurs && !isDefault && !isDeepStrictEqual(plain(old), plain(value))
}

const nameOf = ({ keys }: Setting) => keys.join('.')

/** The value under these keys: own properties only. */
export function valueAt(tree: unknown, keys: readonly (string | number)[]): unknown {
  let value = tree
  for (const key of keys) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string | number, unknown>)[key]
  }
  return value
}

function withValue(tree: unknown, [key, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (key === undefined) return value
  if (typeof key === 'string') {
    const object = isTree(tree) ? tree : {}
    return { ...object, [key]: withValue(valueAt(object, [key]), rest, value) }
  }
  const list: unknown[] = Array.isArray(tree) ? [...(tree as unknown[])] : []
  list[key] = withValue(list[key], rest, value)
  return list
}

/** The content of parsed values, without the prototypes of parsers and the order of keys. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return new Map(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}
