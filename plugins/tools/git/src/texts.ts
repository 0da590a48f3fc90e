const decoder = new TextDecoder()

/** Bytes as text; where they were cut, without the line that is not whole. */
export function wholeText(bytes: Buffer, cut: boolean): string {
  const end = cut ? bytes.lastIndexOf(10) + 1 || bytes.length : bytes.length
  return decoder.decode(bytes.subarray(0, end))
}
