const LATIN = 'windows-1252'

/** Decodes as browsers do: byte order mark, the server's word, the page's own word. Where nobody says, it is UTF-8 if it can be. */
export async function textOf(bytes: Uint8Array, charset: string | undefined, html: boolean): Promise<string> {
  const { default: sniff } = await import('html-encoding-sniffer')
  const label = known(charset)
  const said = sniff(bytes, {
    ...(label !== undefined && { transportLayerEncodingLabel: label }),
    defaultEncoding: 'x-user-defined',
    ...(!html && { maxPrescanBytes: 0 }),
  })
  if (said.toLowerCase() !== 'x-user-defined') return new TextDecoder(known(said) ?? 'utf-8').decode(bytes)
  // the last character may be cut
  return decodedStrictly(bytes) ?? new TextDecoder(LATIN).decode(bytes)
}

function known(label: string | undefined): string | undefined {
  try {
    return label === undefined ? undefined : new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

function decodedStrictly(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}
