import { useQuery } from '@tanstack/react-query'
import { client } from './api.ts'
import { pluginSetTexts } from './plugin-set-text.ts'

/** The revision of the installed plugins on the nodes of a cluster; nothing for a server that acts alone. */
export function PluginSet() {
  const { data } = useQuery({
    queryKey: ['plugins', 'nodes'],
    queryFn: ({ signal }) => client.get('/api/v1/nodes', { signal }),
  })
  const texts = data && data.cluster !== null ? pluginSetTexts(data.nodes) : []
  if (texts.length === 0) return null
  return (
    <section aria-label="Plugins of the cluster">
      {texts.map(({ text, isBad }) => (
        <p key={text} className={isBad ? 'note note-warn small' : 'small muted'}>
          {text}
        </p>
      ))}
    </section>
  )
}
