import { open } from 'node:fs/promises'
import { codeOf, type SvcError, svcError } from '@svc/core'

/** What an entry of `providers` says about its key. */
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

const MOST_BYTES = 16 * 1024

/** Reads the key of an entry from its file or its variable. Throws PROVIDER_KEY, with what to do, where it is missing. */
export async function readKey(entry: KeyEntry, options: KeyOptions): Promise<string | undefined> {
  const { provider, defaultEnv, required } = options
  if (entry.api_key_env !== undefined && entry.api_key_file !== undefined)
    throw wrong(provider, 'names its key twice, in api_key_env and api_key_file', 'keep one of the two')
  if (entry.api_key_file !== undefined)
    return checked(await readKeyFile(entry.api_key_file, provider), provider, 'the file of api_key_file')
  const name = entry.api_key_env ?? defaultEnv
  const key = name === undefined ? '' : (process.env[name]?.trim() ?? '')
  if (key !== '') return checked(key, provider, `the variable ${name}`)
  if (required || entry.api_key_env !== undefined) throw missing(provider, name)
  return undefined
}

async function readKeyFile(path: string, provider: string): Promise<string> {
  try {
    await using file = await open(path, 'r')
    const stat = await file.stat()
    if (!stat.isFile())
      throw wrong(provider, 'its api_key_file is no ordinary file', 'name a file that holds the key and nothing else')
    if (stat.size > MOST_BYTES)
      throw wrong(
        provider,
        `its api_key_file has more than ${MOST_BYTES} bytes`,
        'name a file that holds the key and nothing else'
      )
    return (await file.readFile('utf8')).trim()
  } catch (error) {
    const code = codeOf(error) ?? ''
    if (code === 'PROVIDER_KEY') throw error
    throw wrong(provider, `its api_key_file cannot be read (${code})`, 'mend the path, or let the user that runs svc read it')
  }
}

function checked(key: string, provider: string, source: string): string {
  if (key === '') throw wrong(provider, `${source} is empty`, 'write the key into it')
  if (!/^[\x21-\x7e]+$/.test(key))
    throw wrong(
      provider,
      `${source} holds more than a key: blanks, line ends, or letters that no key has`,
      'write the key into it, and nothing else'
    )
  return key
}

const missing = (provider: string, name: string | undefined): SvcError =>
  name === undefined
    ? wrong(provider, 'has no key', `name the variable that holds it: providers.${provider}.api_key_env, or a file: api_key_file`)
    : wrong(
        provider,
        `the variable ${name} is not set`,
        `set ${name} to the key, or name another variable in providers.${provider}.api_key_env, or a file in api_key_file`
      )

const wrong = (provider: string, message: string, mend: string): SvcError =>
  svcError('PROVIDER_KEY', `providers.${provider}: ${message}`, { where: `providers.${provider}`, mend })
