const MOST = 1024 * 1024

/** Reads the lines of a body as JSON values. Decodes bytes across chunks, and limits the length of a line. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown, void> {
  let rest = ''
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MOST) throw new RangeError(`a line of more than ${MOST} characters`)
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line)
  }
  if (rest.trim() !== '') yield JSON.parse(rest)
}
