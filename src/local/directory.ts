/** Where the embedded servers of a checkout keep their data. */
export const LOCAL_DIRECTORY = ".data";
