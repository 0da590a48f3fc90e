import { useQuery } from '@tanstack/react-query'
import { client } from './api.ts'
import { useFreshening } from './fresh.ts'

const KEY = ['plugin-pages']

/** The pages of plugins that the caller may use. One that is installed appears without a reload. */
export const usePluginPages = () =>
  useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => (await client.get('/api/v1/console/pages', { signal })).pages,
  })

export const useFreshPluginPages = (): void => useFreshening({ key: KEY, isAbout: ({ type }) => /plugin_|reload/.test(type) })
