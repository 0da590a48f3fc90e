/** The images that models read, by media type: how their base64 begins. */
const IMAGE_STARTS: ReadonlyMap<string, string> = new Map([
  ['image/png', 'iVBORw0KGgo'],
  ['image/jpeg', '/9j/'],
  ['image/gif', 'R0lGOD'],
  ['image/webp', 'UklGR'],
])

/** Media types of images that models read. */
export const IMAGE_TYPES: readonly string[] = [...IMAGE_STARTS.keys()]

/** Whether base64 data begins as an image of its media type does. A model gets no bytes that are no image of their type. */
export function isImageData(mimeType: string, data: string): boolean {
  const start = IMAGE_STARTS.get(mimeType)
  return start !== undefined && data.startsWith(start)
}

/** Base64 in the alphabet of svc. */
export const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
