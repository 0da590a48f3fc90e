import { readFile } from 'node:fs/promises'
import { keyMissing } from './errors.ts'
import type { SearchConfig } from './settings.ts'

/** Reads the key of the endpoint from where the configuration says; undefined where it names no place. Throws CONFIG_INVALID. */
export async function readKey({ api_key_env, api_key_file }: SearchConfig): Promise<string | undefined> {
  if (api_key_env !== undefined) return checked(process.env[api_key_env], `the environment variable ${api_key_env}`)
  if (api_key_file !== undefined)
    return checked(await readFile(api_key_file, 'utf8').catch(() => undefined), 'the file of api_key_file')
  return undefined
}

function checked(written: string | undefined, place: string): string {
  const key = written?.trim() ?? ''
  if (!/^[!-~]+$/.test(key)) throw keyMissing(place)
  return key
}
