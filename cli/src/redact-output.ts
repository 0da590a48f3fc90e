import { redactText } from '@svc/core'

const done = new WeakSet<NodeJS.WriteStream>()

/**
 * Replaces the values of secrets in everything that this process writes to its standard streams: output of commands, and of
 * plugins that write there directly. Only text in one piece is recognized.
 */
export function redactOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (done.has(stream)) continue
    done.add(stream)
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean
    Object.assign(stream, { write: (piece: unknown, ...rest: unknown[]) => write(cleanPiece(piece), ...rest) })
  }
}

function cleanPiece(piece: unknown): unknown {
  if (typeof piece === 'string') return redactText(piece)
  if (!(piece instanceof Uint8Array)) return piece
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString()
  const clean = redactText(text)
  return clean === text ? piece : Buffer.from(clean)
}
