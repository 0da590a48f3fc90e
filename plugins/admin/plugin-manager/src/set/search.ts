import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asSvcError } from '@svc/core'
import type { FoundPlugin, SetOptions } from './change-types.ts'
import { searchFailed } from './errors.ts'
import { runNpm } from './npm.ts'

const KEYWORD = 'svc-plugin'

/** As registries answer: not all of them have each key. */
interface SearchResult {
  readonly name?: string
  readonly version?: string
  readonly 'dist-tags'?: { readonly latest?: string }
  readonly description?: string
  readonly keywords?: readonly string[]
  readonly date?: string
  readonly time?: { readonly modified?: string }
}

/** Asks the registry of npm's configuration for packages with the keyword `svc-plugin` that have these words. Throws PLUGIN_SEARCH_FAILED where it knows no search, NPM_MISSING, NPM_FAILED. */
export async function searchPlugins(
  text: string,
  options: Pick<SetOptions, 'signal' | 'npm' | 'limitMs'> = {}
): Promise<FoundPlugin[]> {
  const cwd = await mkdtemp(join(tmpdir(), 'svc-search-'))
  const words = text.split(/\s+/).filter(Boolean)
  const ask = async (keyword: string) => foundIn(await runNpm(['search', '--json', '--', keyword, ...words], { ...options, cwd }))
  try {
    const found = await ask(`keywords:${KEYWORD}`)
    // not every registry knows this way to ask
    return found.length > 0 ? found : await ask(KEYWORD)
  } catch (error) {
    throw isOfSearch(error) ? searchFailed(asSvcError(error, 'NPM_FAILED')) : error
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

/** An unreachable registry and a missing login keep their own errors. */
function isOfSearch(error: unknown): boolean {
  const { code, details } = asSvcError(error, 'FAILED')
  return code === 'PLUGIN_NOT_FOUND' || (code === 'NPM_FAILED' && ['registry', 'other'].includes(String(details.reason)))
}

const foundIn = (answer: string): FoundPlugin[] =>
  (JSON.parse(answer) as SearchResult[]).filter(one => one.keywords?.includes(KEYWORD) && one.name !== undefined).map(foundPlugin)

const foundPlugin = ({ name, version, description, date, time, 'dist-tags': tags }: SearchResult): FoundPlugin => ({
  name: name!,
  version: version ?? tags?.latest ?? '',
  description: description ?? '',
  date: date ?? time?.modified ?? '',
})
