import express from "express";

/** Maximum size of a form's body. */
const FORM_MAX = "16kb";

/** Reads the body of a form into `request.body`, as an object of texts and lists of texts. */
export const readForm = express.urlencoded({ extended: false, limit: FORM_MAX });
