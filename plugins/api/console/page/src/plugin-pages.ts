import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '@svc/client'
import { client } from './api.ts'
import { RELOADED_MS, useFreshening } from './fresh.ts'
import { hasPageName } from './pages.ts'

export type PluginPage = ReplyOf<'get', '/api/v1/console/pages'>['pages'][number]

const KEY = ['plugin-pages']

/** The pages of plugins that the caller may use. One that is installed appears without a reload. */
export const usePluginPages = () =>
  useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => (await client.get('/api/v1/console/pages', { signal })).pages,
  })

export const useFreshPluginPages = (): void =>
  useFreshening({ key: KEY, isAbout: ({ type }) => /plugin_|reload/.test(type), againMs: RELOADED_MS })

/** The pages of plugins that are shown in one place. */
export function usePagesAt(place: PluginPage['place']): readonly PluginPage[] {
  const { data = [] } = usePluginPages()
  return data.filter(page => page.place === place)
}

/** The view of a page. It is read again with the list of the pages. */
export const usePluginView = (name: string) =>
  useQuery({
    queryKey: [...KEY, 'view', name],
    queryFn: ({ signal }) => client.get('/api/v1/console/pages/{name}/view', { path: { name }, signal }),
  })

/** The title of a page; with the name of its plugin if a page of the console has that title, too. */
export const titleOf = ({ title, plugin }: PluginPage): string => (hasPageName(title) ? `${title} (${plugin})` : title)

const TAB = 'page.'

/** The tab of a page, in the address. */
export const tabOf = ({ name }: PluginPage): string => TAB + name

export const isPluginTab = (tab: string | undefined): boolean => tab?.startsWith(TAB) ?? false

/** The tabs of plugins of a run or conversation. */
export const usePluginTabs = (place: 'run' | 'conversation'): readonly (readonly [tab: string, title: string])[] =>
  usePagesAt(place).map(page => [tabOf(page), titleOf(page)])
