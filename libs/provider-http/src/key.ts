import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { codeOf, type SvcError, svcError } from '@svc/core'

/** The keys of a configuration entry that name its API key. */
export interface KeyEntry {
  readonly api_key_env?: string
  readonly api_key_file?: string
}
export interface KeyOptions {
  readonly provider: string
  /** The variable that holds the key if the entry names none. */
  readonly defaultEnv?: string
  /** False: the server needs no key. A variable or file that the entry names must exist anyway. */
  readonly required: boolean
}

/** Options for the key of an entry that is not a provider. */
export interface KeyOfOptions extends Omit<KeyOptions, 'provider'> {
  /** Path of the entry in the configuration. */
  readonly where: string
  /** Code of errors about the key. */
  readonly code: string
}

/** Reads the key of a provider from its file or variable. Throws PROVIDER_KEY if the key is missing. */
export const readKey = (entry: KeyEntry, { provider, ...options }: KeyOptions): Promise<string | undefined> =>
  readKeyOf(entry, { ...options, where: `providers.${provider}`, code: 'PROVIDER_KEY' })

/** Reads a key from the file or variable that an entry names. Throws an error with `options.code` if the key is missing or malformed. */
export async function readKeyOf(entry: KeyEntry, options: KeyOfOptions): Promise<string | undefined> {
  if (entry.api_key_env !== undefined && entry.api_key_file !== undefined)
    throw wrong(options, 'names its key twice, in api_key_env and api_key_file', 'Keep only one of them')
  if (entry.api_key_file !== undefined)
    return checked(await readKeyFile(entry.api_key_file, options), options, 'the file of api_key_file')
  const name = entry.api_key_env ?? options.defaultEnv
  const key = name === undefined ? '' : (process.env[name]?.trim() ?? '')
  if (key !== '') return checked(key, options, `the variable ${name}`)
  if (options.required || entry.api_key_env !== undefined) throw missing(options, name)
  return undefined
}

/** The problems of an entry, for the `check` of its plugin: the error that `reading` rejects with. */
export const entryProblems = (reading: Promise<unknown>): Promise<readonly SvcError[]> =>
  reading.then(
    () => [],
    (error: unknown) => {
      if (ENTRY_CODES.has(codeOf(error))) return [error as SvcError]
      throw error
    }
  )

const ENTRY_CODES = new Set<string | undefined>(['PROVIDER_KEY', 'PROVIDER_CONFIG'])

const MOST_BYTES = 16 * 1024
// A pipe without a writer must not block the start.
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

async function readKeyFile(path: string, where: Where): Promise<string> {
  const read = await open(path, FLAGS)
    .then(contentOf)
    .catch((error: unknown) => codeOf(error) ?? 'unknown')
  if (typeof read === 'string')
    throw wrong(
      where,
      `its api_key_file cannot be read (${read})`,
      'Correct the path, or let the user that runs svc read the file'
    )
  if (read.problem !== undefined) throw wrong(where, `its api_key_file ${read.problem}`, 'Name a file that contains only the key')
  return read.text
}

async function contentOf(opened: FileHandle): Promise<{ readonly text: string; readonly problem?: string }> {
  await using file = opened
  if (!(await file.stat()).isFile()) return { text: '', problem: 'is not a regular file' }
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_BYTES + 1), 0, MOST_BYTES + 1, 0)
  if (bytesRead > MOST_BYTES) return { text: '', problem: `has more than ${MOST_BYTES} bytes` }
  return { text: buffer.toString('utf8', 0, bytesRead).trim() }
}

function checked(key: string, where: Where, source: string): string {
  if (key === '') throw wrong(where, `${source} is empty`, 'Write the key into it')
  if (!/^[\x21-\x7e]+$/.test(key))
    throw wrong(
      where,
      `${source} contains characters that a key cannot have, such as spaces or line breaks`,
      'Write only the key into it'
    )
  return key
}

type Where = Pick<KeyOfOptions, 'where' | 'code'>

const missing = (options: Where, name: string | undefined): SvcError =>
  name === undefined
    ? wrong(
        options,
        'has no key',
        `Set ${options.where}.api_key_env to the variable that holds the key, or api_key_file to a file`
      )
    : wrong(
        options,
        `the variable ${name} is not set`,
        `Set ${name} to the key, or name another variable in ${options.where}.api_key_env, or a file in api_key_file`
      )

const wrong = ({ where, code }: Where, message: string, hint: string): SvcError =>
  svcError(code, `${where}: ${message}`, { where, hint })
