import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { codeOf, type SvcError, svcError } from '@svc/core'

/** What an entry of the configuration says about its key. */
export interface KeyEntry {
  readonly api_key_env?: string
  readonly api_key_file?: string
}
export interface KeyOptions {
  readonly provider: string
  /** The variable that holds the key where the entry names none. */
  readonly defaultEnv?: string
  /** False: a server that asks for no key; only what the entry names must be there. */
  readonly required: boolean
}

/** The same for what is no provider. */
export interface KeyOfOptions extends Omit<KeyOptions, 'provider'> {
  /** The entry in the configuration, and what an error about its key is called. */
  readonly where: string
  readonly code: string
}

/** Reads the key of a provider from its file or its variable. Throws PROVIDER_KEY, with what to do, where it is missing. */
export const readKey = (entry: KeyEntry, { provider, ...options }: KeyOptions): Promise<string | undefined> =>
  readKeyOf(entry, { ...options, where: `providers.${provider}`, code: 'PROVIDER_KEY' })

/** Reads a key from the file or the variable that an entry names. Throws an error of that code, with what to do, where it is missing or no key. */
export async function readKeyOf(entry: KeyEntry, options: KeyOfOptions): Promise<string | undefined> {
  if (entry.api_key_env !== undefined && entry.api_key_file !== undefined)
    throw wrong(options, 'names its key twice, in api_key_env and api_key_file', 'keep one of the two')
  if (entry.api_key_file !== undefined)
    return checked(await readKeyFile(entry.api_key_file, options), options, 'the file of api_key_file')
  const name = entry.api_key_env ?? options.defaultEnv
  const key = name === undefined ? '' : (process.env[name]?.trim() ?? '')
  if (key !== '') return checked(key, options, `the variable ${name}`)
  if (options.required || entry.api_key_env !== undefined) throw missing(options, name)
  return undefined
}

/** What is wrong with an entry, for its plugin's `check`: what reading it throws. */
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
    throw wrong(where, `its api_key_file cannot be read (${read})`, 'fix the path, or let the user that runs svc read it')
  if (read.fault !== undefined)
    throw wrong(where, `its api_key_file ${read.fault}`, 'name a file that holds the key and nothing else')
  return read.text
}

async function contentOf(opened: FileHandle): Promise<{ readonly text: string; readonly fault?: string }> {
  await using file = opened
  if (!(await file.stat()).isFile()) return { text: '', fault: 'is no ordinary file' }
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_BYTES + 1), 0, MOST_BYTES + 1, 0)
  if (bytesRead > MOST_BYTES) return { text: '', fault: `has more than ${MOST_BYTES} bytes` }
  return { text: buffer.toString('utf8', 0, bytesRead).trim() }
}

function checked(key: string, where: Where, source: string): string {
  if (key === '') throw wrong(where, `${source} is empty`, 'write the key into it')
  if (!/^[\x21-\x7e]+$/.test(key))
    throw wrong(
      where,
      `${source} holds more than a key: blanks, line ends, or letters that no key has`,
      'write the key into it, and nothing else'
    )
  return key
}

type Where = Pick<KeyOfOptions, 'where' | 'code'>

const missing = (options: Where, name: string | undefined): SvcError =>
  name === undefined
    ? wrong(options, 'has no key', `name the variable that holds it: ${options.where}.api_key_env, or a file: api_key_file`)
    : wrong(
        options,
        `the variable ${name} is not set`,
        `set ${name} to the key, or name another variable in ${options.where}.api_key_env, or a file in api_key_file`
      )

const wrong = ({ where, code }: Where, message: string, hint: string): SvcError =>
  svcError(code, `${where}: ${message}`, { where, hint })
