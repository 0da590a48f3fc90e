import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { allows, client, session } from './api.ts'
import { isRecord } from './schema-input.tsx'
import ToolApp from './tool-app.tsx'
import { useValue } from './value.ts'

interface PieceAppProps {
  readonly tool: string
  readonly input: unknown
  readonly result: unknown
  /** Whether it is there at once, and not after a click. */
  readonly isOpen: boolean
}

/** The app of a tool that a model has called, if it has one. */
export default function PieceApp({ tool, input, result, isOpen }: PieceAppProps) {
  const [isShown, setShown] = useState(isOpen)
  const current = useValue(session)
  const mayCall = current.state !== 'in' || allows(current.me, 'tools')
  const { data } = useQuery({
    queryKey: ['tools', tool],
    queryFn: ({ signal }) => client.get('/api/v1/tools/{name}', { path: { name: tool }, signal }),
    enabled: mayCall,
  })
  if (!mayCall || !data?.app) return null
  if (!isShown)
    return (
      <button type="button" className="button" onClick={() => setShown(true)}>
        Show the app of {tool}
      </button>
    )
  return <ToolApp tool={tool} input={isRecord(input) ? input : {}} result={resultOf(result)} />
}

/** Models get a structured result as JSON, and the texts of any other. */
const resultOf = (result: unknown) => ({
  content: [{ type: 'text', text: typeof result === 'string' ? result : JSON.stringify(result) }],
  ...(isRecord(result) && { structuredContent: result }),
  isError: false,
})
