import type { Generated, GeneratedPart, Streamed, StreamPart } from './sdk.ts'

/** A whole answer as the stream it could have been. */
export const toStream = (generated: Generated): Streamed => ({ stream: ReadableStream.from(partsOf(generated)) })

const partsOf = ({ content, finishReason, usage, warnings }: Generated): StreamPart[] => [
  { type: 'stream-start', warnings },
  ...content.flatMap((part, at) => pieces(part, String(at))),
  { type: 'finish', finishReason, usage },
]

/** Parts of unknown types (sources, files) are passed over, as in a stream. */
function pieces(part: GeneratedPart, id: string): StreamPart[] {
  if (part.type === 'tool-call') return [part]
  if (part.type !== 'text' && part.type !== 'reasoning') return []
  const { type, text, ...told } = part
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, providerMetadata: told.providerMetadata },
  ]
}
